# Root's part of a chamber on Modal, before boot.sh and before any hostile byte. What the service does not hold is
# held here as far as its kernel lets us, and each thing that holds is said as a fact.
uid=$1 pids=$2 files=$3 bytes=$4 inodes=$5 boot=$6

lacks=
for tool in head tar env setpriv mkdir chown; do
    command -v "$tool" >/dev/null 2>&1 || lacks="$lacks $tool"
done
if [ -n "$lacks" ]; then
    printf 'blastdoor 1\nfact lacks%s\nready\n' "$lacks"
    exit 0
fi

held=
options="size=$bytes,nosuid,nodev"
tmpfs() { mount -t tmpfs -o "$options,$2" blastdoor "$1" 2>/dev/null; }
mkdir -p /work /tmp /dev/shm
ours="mode=0700,uid=$uid,gid=$uid"
# Not every kernel that mounts can count files.
if { options="$options,nr_inodes=$inodes" && tmpfs /work "$ours" && held="work_bytes work_inodes"; } ||
    { options="size=$bytes,nosuid,nodev" && tmpfs /work "$ours" && held=work_bytes; }; then
    # With nowhere else to write, the root can be closed as well.
    if tmpfs /tmp noexec,mode=1777 && tmpfs /dev/shm noexec,mode=1777 && mount -o remount,ro / 2>/dev/null; then
        held="$held read_only_root"
    fi
else
    chown "$uid:$uid" /work
fi

# Shells differ in the letter for processes, and some end where they meet a wrong one: try it aside.
letter=u
(ulimit -u "$pids") 2>/dev/null || letter=p
(ulimit "-$letter" "$pids") 2>/dev/null && ulimit "-$letter" "$pids" && held="$held pids"
(ulimit -n "$files") 2>/dev/null && ulimit -n "$files" && held="$held open_files"
(ulimit -c 0) 2>/dev/null && ulimit -c 0 && held="$held core"

network=none
while read -r interface _; do
    case $interface in Iface | lo) ;; *) network=routed ;; esac
done 2>/dev/null </proc/net/route

# The image's variables may preload code, and the service adds its own: only harmless ones go on.
set --
for name in PATH LANG LANGUAGE LC_ALL TZ DEBIAN_FRONTEND PYTHON_VERSION CUDA_VERSION NVIDIA_VISIBLE_DEVICES \
    NVIDIA_DRIVER_CAPABILITIES; do
    eval "[ -z \"\${$name+x}\" ]" || eval "set -- \"\$@\" \"$name=\$$name\""
done
exec env -i "$@" setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs --inh-caps=-all \
    --bounding-set=-all -- sh -c "$boot" blastdoor "held $held" "network $network"
