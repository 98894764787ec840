#!/usr/bin/env python3
"""Measures what others offer on the same GPUs and adds the rows to the files of run.sh bench.

NCCL's all_to_all_single through PyTorch, and cudaMemcpyBatchAsync through cuda-python where it is
installed. Usage: yardsticks.py FOLDER_OF_JSON
"""

import json
import os
import sys
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from measurements import write

SIZES = [16 << 20, 256 << 20, 1 << 30, 4 << 30]
RUNS = 5


def nccl_rank(rank, count, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + count))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=count)
    for size in SIZES:
        send = torch.empty(size, dtype=torch.uint8, device="cuda")
        receive = torch.empty_like(send)
        repeat = max(3, min(50, (4 << 30) // size))
        rates = []
        for _ in range(RUNS + 1):
            dist.barrier()
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(repeat):
                dist.all_to_all_single(receive, send)
            end.record()
            torch.cuda.synchronize()
            seconds = torch.tensor(begin.elapsed_time(end) / 1e3, device="cuda")
            dist.all_reduce(seconds, dist.ReduceOp.MAX)
            rates.append(size * (count - 1) / count * repeat / seconds.item() / 1e9)
        if rank == 0:
            counted = sorted(rates[1:])
            results.append(
                {
                    "case": "nccl",
                    "gpus": count,
                    "bytes_per_rank": size,
                    "gbps": round(median(counted), 1),
                    "gbps_least": round(counted[0], 1),
                    "gbps_most": round(counted[-1], 1),
                }
            )
        del send, receive
        torch.cuda.empty_cache()
    dist.destroy_process_group()


def nccl():
    rows = mp.Manager().list()
    count = 2
    while count <= torch.cuda.device_count():
        mp.spawn(nccl_rank, args=(count, rows), nprocs=count)
        count *= 2
    return list(rows)


def memcpy_batch():
    """Gathers from the second GPU to the first by one call for all blocks."""
    try:
        from cuda.bindings import driver as cu
    except ImportError:
        print("no cuda-python here: no memcpy_batch rows")
        return []
    if torch.cuda.device_count() < 2:
        return []
    torch.cuda.set_device(0)
    area = 1 << 30
    target = torch.empty(area, dtype=torch.uint8, device="cuda:0")
    source = torch.empty(area, dtype=torch.uint8, device="cuda:1")
    target[:1024].copy_(source[:1024])  # Lets the GPUs reach each other.
    rows = []
    stream = torch.cuda.Stream()
    attributes = cu.CUmemcpyAttributes()
    attributes.srcAccessOrder = cu.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    for size in (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20):
        blocks = min(area // size, 4000)
        to = [cu.CUdeviceptr(target.data_ptr() + i * size) for i in range(blocks)]
        of = [cu.CUdeviceptr(source.data_ptr() + i * size) for i in range(blocks)]
        lengths = [size] * blocks
        rates = []
        for _ in range(RUNS + 1):
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            # The call's own time in Python counts for nothing: a wait in front of it hides it.
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)
                begin.record()
                result = cu.cuMemcpyBatchAsync(
                    to, of, lengths, blocks, [attributes], [0], 1, stream.cuda_stream
                )
                end.record()
            if int(result[0]) != 0:
                print("cuMemcpyBatchAsync:", result)
                return rows
            torch.cuda.synchronize()
            rates.append(size * blocks / begin.elapsed_time(end) / 1e6)
        counted = sorted(rates[1:])
        rows.append(
            {
                "case": "memcpy_batch",
                "block_bytes": size,
                "blocks": blocks,
                "gbps": round(median(counted), 2),
                "gbps_least": round(counted[0], 2),
                "gbps_most": round(counted[-1], 2),
            }
        )
    return rows


def add(file, rows):
    content = json.loads(file.read_text())
    content["host"]["torch"] = torch.__version__
    content["host"]["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    content["rows"] += rows
    write(file, content)


def main():
    folder = Path(sys.argv[1])
    for name, measure in (("alltoall", nccl), ("gather", memcpy_batch)):
        file = folder / f"{name}.json"
        if file.exists():
            try:
                rows = measure()
            except Exception as failure:  # One yardstick less must not cost the others.
                print(f"{name}: no yardstick: {failure!r}")
                rows = []
            for row in rows:
                print(name, json.dumps(row))
            add(file, rows)


if __name__ == "__main__":
    main()
