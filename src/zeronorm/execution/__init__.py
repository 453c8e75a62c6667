"""How work runs: threads, memory, reading ahead and Ctrl-C; what is computed is not known here."""

from zeronorm.execution._interrupts import pass_on_interruption, stoppable
from zeronorm.execution._memory import (
    NotEnoughMemoryError,
    available_bytes,
    long_vector,
    require_memory,
    reusing_memory,
)
from zeronorm.execution._reading import Part, memory_for, opened, read_in_turn, work_in_turn
from zeronorm.execution._threads import (
    available_threads,
    in_threads,
    n_cores,
    one_thread,
    one_thread_for_factors,
    one_thread_for_little_work,
    one_thread_for_products,
    one_thread_if_small,
    run_in_threads,
    thread_controller,
    useful_threads,
)

__all__ = [
    "NotEnoughMemoryError",
    "Part",
    "available_bytes",
    "available_threads",
    "in_threads",
    "long_vector",
    "memory_for",
    "n_cores",
    "one_thread",
    "one_thread_for_factors",
    "one_thread_for_little_work",
    "one_thread_for_products",
    "one_thread_if_small",
    "opened",
    "pass_on_interruption",
    "read_in_turn",
    "require_memory",
    "reusing_memory",
    "run_in_threads",
    "stoppable",
    "thread_controller",
    "useful_threads",
    "work_in_turn",
]
