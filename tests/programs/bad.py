"""Programs that do something wrong."""

import os
import signal
import sys
import threading
import time

import cutlass
import cutlass.cute as cute


def deeper():
    raise ValueError("the tile is odd")


def raises():
    return deeper()


def chained():
    try:
        deeper()
    except ValueError as e:
        raise RuntimeError("no such luck") from e


def nothing():
    return None


def text():
    return "a string"


def empty():
    return {}


def mixed():
    return {"layout": cute.make_layout((4, 8)), "number": 3}


def rank3():
    return {"deep": cute.make_layout((4, 8, 2))}


def needs(m, n=8):
    return cute.make_layout((m, n))


def aborts():
    layout = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((10, 2), stride=(2, 1)))
    return cute.slice_(layout, (None, 0))


def segfaults():
    os.kill(os.getpid(), signal.SIGSEGV)


def exits():
    sys.exit(3)


def hard_exit():
    os._exit(7)


def interrupted():
    raise KeyboardInterrupt


def hangs():
    time.sleep(1000)


def closes():
    sys.stdout.close()
    sys.stderr.close()
    os.close(1)
    return cute.make_layout((4, 8))


def wanders():
    os.chdir("/")
    os.environ["TEXGEN_TEST_LEFT_BEHIND"] = "1"
    sys.path.insert(0, "/nowhere")
    threading.Thread(target=time.sleep, args=(1000,)).start()
    return cute.make_layout((4, 8))


def reads_input():
    return input()


def wrong_tile():
    from cutlass.cute.nvgpu import warp

    return warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 7))
