# PID 1 of every chamber. Needs sh, head and tar, nothing more. Orders come on stdin (kept as 3), answers go to
# stdout (kept as 4), everything else is the log. Until "ready" is answered by a bundle, no hostile byte is here.
exec 3<&0 4>&1 0</dev/null 1>&2
umask 022
say() { printf '%s\n' "$*" >&4; }

# Facts, read with builtins only: a fork costs more than the whole rest of the start. Said all at once, since each word
# wakes whoever listens, and read no further than needed: a shell asks the kernel for every single byte.
told='blastdoor 1'
note() { told="$told${told:+
}fact $*"; }
cpu() {
    while IFS= read -r line; do
        case $line in
        '') break ;;
        'model name'*) note "cpu ${line#*:}"; break ;;
        'CPU implementer'* | 'CPU part'*) note "cpu ${line#*:}" ;;
        esac
    done
}
memory() {
    while IFS= read -r line; do
        case $line in MemTotal*) note "memory ${line#*:}"; break ;; esac
    done
}
whole() { IFS= read -r line 2>/dev/null <"$2" && note "$1 $line"; }
rights() {
    while IFS= read -r line; do
        case $line in
        Uid:*) note "uid ${line#*:}" ;;
        CapBnd:*) note "capabilities ${line#*:}" ;;
        NoNewPrivs:*) note "no_new_privileges ${line#*:}" ;;
        Seccomp:*) note "seccomp ${line#*:}" ;;
        esac
    done
}
routes() {
    IFS= read -r line || return
    count=0
    while IFS= read -r line; do count=$((count + 1)); done
    note "routes $count"
}

# Where there is a GPU, forks do not matter. The driver's own tool knows best: /proc may be missing, or the host's.
# A GPU without a device node is not ours, whatever /proc says. In a subshell, so that nothing of it stays.
gpu_facts() (
    set -f
    count=0 memories='' IFS='
'
    query=name,memory.total,driver_version,uuid,mig.mode.current
    for line in $(nvidia-smi --query-gpu=$query --format=csv,noheader 2>/dev/null); do
        case $line in *', GPU-'*) ;; *) continue ;; esac
        rest=${line#*, }
        one_gpu "${line%%, *}" "${rest%%, *}"
        rest=${rest#*, }
        [ "$count" = 1 ] && say "fact gpu_driver ${rest%%, *}"
        rest=${rest#*, }
        say "fact gpu_id ${rest%%, *}"
        case $line in *', Enabled') say 'fact gpu_mig 1' ;; esac
    done
    for line in $(nvidia-smi -q -d COMPUTE 2>/dev/null); do
        case $line in 'CUDA '*Version*': '*) [ "$count" != 0 ] && say "fact cuda ${line##*: }"; break ;; esac
    done
    [ "$count" = 0 ] && gpu_facts_of_proc
    [ "$count" != 0 ] && say "fact gpu_count $count"
    [ -n "$memories" ] && say "fact gpu_memory $memories"
)
one_gpu() {
    count=$((count + 1))
    say "fact gpu $1"
    [ -n "$2" ] && memories="$memories${memories:+; }$2"
}
gpu_facts_of_proc() {
    set +f
    unset IFS
    for gpu in /proc/driver/nvidia/gpus/*/information; do
        model='' id='' minor=none
        while IFS=: read -r key value; do
            case $key in
            Model) model=$value ;;
            'GPU UUID') id=$value ;;
            'Device Minor') minor=$value ;;
            esac
        done 2>/dev/null <"$gpu"
        [ -e "/dev/nvidia${minor##*[!0-9]}" ] || continue
        one_gpu "$model" ''
        say "fact gpu_id $id"
    done
    [ "$count" != 0 ] && IFS= read -r line </proc/driver/nvidia/version &&
        for word in $line; do
            case $word in [0-9]*.[0-9]*) say "fact gpu_driver $word"; break ;; esac
        done
}

# What a wrapper before us has to say of itself.
for fact in "$@"; do note "$fact"; done
cpu 2>/dev/null </proc/cpuinfo
whole cores /sys/devices/system/cpu/online
memory 2>/dev/null </proc/meminfo
whole kernel /proc/sys/kernel/osrelease
if [ -e /dev/nvidiactl ] || command -v nvidia-smi >/dev/null; then
    say "$told"
    told=''
    gpu_facts
fi
rights </proc/self/status
routes 2>/dev/null </proc/net/route
say "${told:+$told
}ready"

# One line: mode, 1 if there is a build step, length of the bundle. End of stdin means that nobody is left to serve.
# Nothing follows the bundle until it is acknowledged, so a head that reads ahead swallows nothing.
read -r mode has_build length <&3 || exit 0
cd /work || exit 1
head -c "$length" <&3 | tar -xf - 4>&- || { say 'unpacked 1'; exit 1; }
say 'unpacked 0'
read -r _ <&3 || exit 0

# We were told to go. From here on, candidate and PID 1 share a uid: whatever is said counts as the candidate's words.
step() { sh "/work/$1.sh" 3<&- 4>&-; }
# Could anything still be written, and was a fork ever refused? Builtins only: here a fork may fail.
strain() {
    full=0 forks=0
    printf '%4096s' x 2>/dev/null >/work/.full || full=1
    for events in /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events; do
        [ -r "$events" ] && read -r _ forks <"$events"
    done
}
build_step() {
    [ "$has_build" = 1 ] || return 0
    step build
    code=$?
    strain
    say "built $code $full $forks"
    return $code
}

if [ "$mode" = relay ]; then
    build_step && sh /work/run.sh <&3 >&4 3<&- 4>&-
    exit 0
fi

# Where we are not PID 1, root's processes stay, and `kill -1` succeeds for as long as there is anybody: look for the
# living of our own user then. A zombie is dead.
others() {
    for process in /proc/[0-9]*; do
        { [ -O "$process" ] && [ "$process" != "/proc/$$" ]; } || continue
        while read -r key state _; do
            [ "$key" = State: ] || continue
            [ "$state" = Z ] || return 0
            break
        done 2>/dev/null <"$process/status"
    done
    return 1
}

{
    trap : TERM
    if build_step; then
        step run
        code=$?
        strain
        say "done $code $full $forks"
    fi
} 3<&- &
while read -r order <&3; do
    case $order in
    stop) kill -TERM -1 ;;
    harvest)
        kill -KILL -1 2>/dev/null
        wait
        # A killed process may still be finishing a write, and orphans must be reaped: collect only from the dead.
        while kill -KILL -1 2>/dev/null && { [ $$ = 1 ] || others; }; do sh -c :; done
        say archive
        tar -cf - -C /work/out . >&4
        exit 0
        ;;
    esac
done
