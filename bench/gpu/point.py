"""One problem on the GPU: operands that rotate over more than five times L2, and a captured graph for each way to compute it.
SPDX-License-Identifier: Apache-2.0"""
import ctypes
from ctypes import byref, c_void_p

from bars import WAYS
from fp8route_c import CODES, HALVES, SCALES, Failure, Pointers

ROTATE_BYTES = 400 << 20
GRAPH_US = 500.0
FLOOR_BLOCKS = (528, 1056, 2112)
GRAIN = 4096
LARGE = 2 << 20  # weights begin where allocators place large tensors


def round_up(size, grain=GRAIN):
    return size + -size % grain


class Machine:
    """What all points share: the library, two contexts, a stream, memory, torch where it is there."""

    def __init__(self, library, routes, torch):
        self.library, self.torch = library, torch
        self.context = library.context(routes)
        self.without_pdl = library.context(routes, FP8ROUTE_PDL="0")
        stream = c_void_p()
        library.cuda("bench_stream", byref(stream))
        self.stream = stream.value
        self.regions = {}
        for name, size, kind in (("codes", 5 << 28, CODES), ("halves", 5 << 28, HALVES), ("out", 1 << 31, None),
                                 ("space", 1 << 29, None), ("scales", 1 << 24, SCALES)):
            self.regions[name] = (library.allocate(size), size)
            if kind is not None:
                count = size // (1, 2, 4)[kind]
                library.cuda("bench_fill", self.regions[name][0], count, kind, 1 + kind, self.stream)
        library.cuda("bench_wait", self.stream)

    def place(self, region, offset, size):
        """An address in a region; what does not fit begins anew at its start."""
        start, whole = self.regions[region]
        if size > whole:
            raise Failure(f"{size} bytes do not fit into the {region} of the benchmark")
        return start + (offset if offset + size <= whole else offset % (whole - size + 1) // LARGE * LARGE)

    def tensor(self, address, shape, dtype):
        """A torch view of our memory."""
        class Memory:
            __cuda_array_interface__ = {"shape": (1,), "typestr": "|u1", "data": (address, False), "version": 3}
        count = shape[0] * shape[1] * dtype.itemsize
        Memory.__cuda_array_interface__["shape"] = (count,)
        return self.torch.as_tensor(Memory(), device="cuda").view(dtype).view(*shape)


class Point:
    """Operands and graphs of a case. ways: {(way, mode)} as in bars.py."""

    def __init__(self, machine, case, ways):
        self.machine, self.library, self.case = machine, machine.library, case
        self.graphs, self.labels, self.plans = {}, {}, []
        self.matmuls = {way: self.library.parse(case.text(way)) for way, _ in ways}
        self.matmuls.setdefault("routed", self.library.parse(case.text("routed")))
        self._lay_out()
        self.us = max(4.0, self.bytes / 4.3e6, 2e-6 * self._batch() * case.m * case.n * case.k / 1400)
        self.failures = {}
        for way, mode in sorted(ways):
            try:
                self._add(way, mode)
            except RuntimeError as failure:  # ours or torch's
                self.failures[way, mode] = f"{case.text(way)}: {failure}"

    def _batch(self):
        return max(1, self.matmuls["routed"].out.batch)

    def _lay_out(self):
        most = {name: max(getattr(m, name).extent_bytes() for m in self.matmuls.values()) for name in ("a", "b", "out")}
        self.sizes = {name: round_up(size + GRAIN) for name, size in most.items()}
        routed = self.matmuls["routed"]
        self.bytes = sum(getattr(routed, name).extent_bytes() for name in ("a", "b", "out"))
        self.sets = max(2, -(-ROTATE_BYTES // self.bytes))

    def _step(self):
        """From one set's codes to the next one's."""
        return round_up(self.sizes["a"] + self.sizes["b"], LARGE if self.sizes["b"] > 4 * LARGE else GRAIN)

    def _skew(self, matrix):
        """The alignment that the case's text asks for, as an offset."""
        return (matrix.data or 0) % 256

    def address(self, way, name, i):
        """b and a of a set lie side by side, so that the floor streams them as one."""
        matrix = getattr(self.matmuls[way], name)
        size, step = self.sizes[name], self._step()
        if name == "out":
            return self.machine.place("out", i * size, size) + self._skew(matrix)
        if name == "a" and matrix.dtype in (3, 4):
            return self.machine.place("halves", i * size, size) + self._skew(matrix)
        both = self.machine.place("codes", i * step, step)
        return both + (self.sizes["b"] if name == "a" else 0) + self._skew(matrix)

    def pointers(self, way, i):
        matmul = self.matmuls[way]
        scales = self.machine.regions["scales"][0]
        present = {"a": self.address(way, "a", i), "b": self.address(way, "b", i), "out": self.address(way, "out", i),
                   "scale_a": scales, "scale_b": scales + (1 << 23), "bias": self.machine.regions["halves"][0]}
        return Pointers(ctypes.sizeof(Pointers), matmul.a.rows,
                        *[present[name] if getattr(matmul, name).dtype else None for name in present])

    # ---- Calls: one launch of set i on the machine's stream ----

    def _plan(self, way, mode):
        context = self.machine.without_pdl if mode == "off" else self.machine.context
        plan = self.library.plan(context, self.matmuls[way], WAYS[way][1])
        self.plans.append(plan)
        self.labels[way, mode] = self.library.c.fp8r_plan_backend(plan, self.matmuls[way].a.rows).decode()
        return plan

    def _planned(self, way, mode):
        plan = self._plan(way, mode)
        space, needed = self.machine.regions["space"][0], self.library.c.fp8r_plan_workspace(plan)
        if needed > self.machine.regions["space"][1]:
            raise Failure(f"{self.case.text(way)} needs {needed} bytes of workspace")
        pointers = [self.pointers(way, i) for i in range(self.sets)]
        run, stream = self.library.c.fp8r_plan_run, self.machine.stream
        return lambda i: self.library.ok(run(plan, byref(pointers[i]), space, needed, stream))

    def _torch(self, way):
        torch, case = self.machine.torch, self.case
        fp8, scales = torch.float8_e4m3fn, self.machine.regions["scales"][0]
        def view(name, i, rows, cols, dtype):
            return self.machine.tensor(self.address(way, name, i), (rows, cols), dtype)
        operands = [(view("a", i, case.m, case.k, fp8), view("b", i, case.n, case.k, fp8).t(),
                     view("out", i, case.m, case.n, torch.bfloat16)) for i in range(self.sets)]
        shapes = ((case.m, 1), (1, case.n)) if way == "torch row" else ((1, 1), (1, 1))
        scale_a = self.machine.tensor(scales, shapes[0], torch.float32)
        scale_b = self.machine.tensor(scales + (1 << 23), shapes[1], torch.float32)
        if way == "torch scalar":
            scale_a, scale_b = scale_a.view(()), scale_b.view(())
        self.labels[way, "bare"] = "torch._scaled_mm"
        side = torch.cuda.ExternalStream(self.machine.stream)

        def call(i):
            a, b, out = operands[i]
            with torch.cuda.stream(side):
                torch._scaled_mm(a, b, scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True,
                                 out=out)
        return call

    def _floor(self, blocks, dependent):
        streamed = self.matmuls["routed"].a.extent_bytes() + self.matmuls["routed"].b.extent_bytes()
        written = self.matmuls["routed"].out.extent_bytes()
        return lambda i: self.library.cuda("bench_floor", self.address("routed", "b", i), streamed,
                                           self.address("routed", "out", i), written, blocks, dependent, self.machine.stream)

    def _chained(self, way, call, dependent, early):
        size = self.matmuls[way].a.extent_bytes()
        def both(i):
            source = self.machine.place("codes", i * self._step() + (1 << 29), size)
            self.library.cuda("bench_producer", source, self.address(way, "a", i), size, int(dependent), int(early),
                              self.machine.stream)
            call(i)
        return both

    # ---- Graphs ----

    def _capture(self, call):
        repeats = max(1, round(GRAPH_US / (self.us * self.sets)))
        call(0)
        self.library.cuda("bench_wait", self.machine.stream)
        graph = c_void_p()
        self.library.cuda("bench_capture_begin", self.machine.stream)
        for _ in range(repeats):
            for i in range(self.sets):
                call(i)
        self.library.cuda("bench_capture_end", self.machine.stream, byref(graph))
        return graph, repeats * self.sets

    def launches_dependents(self, way="routed"):
        """Programmatic dependent launch is what our own kernels have."""
        return not self.labels.get((way, "bare"), self.labels.get((way, "chain"), "")).startswith(("cublaslt", "torch"))

    def _add(self, way, mode):
        if way == "floor":
            if ("routed", "bare") not in self.labels:
                self._plan("routed", "bare")
            for blocks in FLOOR_BLOCKS:
                self.graphs[f"floor {blocks}", mode] = self._capture(self._floor(blocks, int(self.launches_dependents())))
            return
        is_torch = way.startswith("torch") and self.machine.torch is not None
        call = self._torch(way) if is_torch else self._planned(way, mode)
        if mode != "bare":
            label = self.labels.get((way, mode), "torch")
            dependent = mode != "off" and not label.startswith(("cublaslt", "torch"))
            call = self._chained(way, call, dependent, mode == "early" and dependent)
        self.graphs[way, mode] = self._capture(call)

    def replay(self, ms):
        """Keeps the device busy for about as long."""
        for graph, calls in list(self.graphs.values())[:1]:
            self.library.cuda("bench_replay", graph, self.machine.stream, max(1, int(ms * 1e3 / (self.us * calls))))

    def measure(self, rounds, seed):
        """Samples in us a launch, {(way, mode): [one a round]}."""
        names = list(self.graphs)
        if not names:
            return {}
        handles = (c_void_p * len(names))(*[self.graphs[name][0] for name in names])
        us = (ctypes.c_double * (len(names) * rounds))()
        self.library.cuda("bench_rounds", handles, len(names), rounds, seed, self.machine.stream, us)
        samples = {name: [us[r * len(names) + i] / self.graphs[name][1] for r in range(rounds)]
                   for i, name in enumerate(names)}
        floors = {name: s for name, s in samples.items() if name[0].startswith("floor")}
        if floors:
            samples["floor", "bare"] = min(floors.values(), key=lambda s: sorted(s)[len(s) // 2])
        return samples

    def close(self):
        for graph, _ in self.graphs.values():
            self.library.cuda("bench_graph_free", graph)
        for plan in self.plans:
            self.library.c.fp8r_plan_destroy(plan)
