"""What a chamber's ending means to an attempt."""

from orchestrator.domain.ending import Ending
from sandbox import Ending as ChamberEnding

# A broken protocol can only be the candidate's doing: it speaks with PID 1's voice.
ENDINGS: dict[ChamberEnding, Ending | None] = {
    ChamberEnding.COMPLETED: None,
    ChamberEnding.FAILED: Ending.FAILED,
    ChamberEnding.BUILD_FAILED: Ending.BUILD_FAILED,
    ChamberEnding.BUILD_TIMED_OUT: Ending.TIMED_OUT,
    ChamberEnding.TIMED_OUT: Ending.TIMED_OUT,
    ChamberEnding.OUT_OF_MEMORY: Ending.OUT_OF_MEMORY,
    ChamberEnding.PROCESS_LIMIT: Ending.FAILED,
    ChamberEnding.WORK_FULL: Ending.FAILED,
    ChamberEnding.LOG_OVERFLOW: Ending.FAILED,
    ChamberEnding.OUTPUT_REFUSED: Ending.INVALID,
    ChamberEnding.PROTOCOL: Ending.TAMPERED,
    ChamberEnding.STOPPED: Ending.PRUNED,
    ChamberEnding.KILLED: Ending.INFRASTRUCTURE,
}
