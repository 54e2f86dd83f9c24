// answers[j] is the sum of twist(values[i] ^ keys[j]) over all i, modulo 2^32. Three ways, each right; make it faster.
// THREADS, KEYS and TILE come from params.json, when this is compiled.

typedef unsigned int u32;

__device__ __forceinline__ u32 twist(u32 t) {
    t *= 0x9E3779B1u;
    t ^= t >> 15;
    t *= 0x85EBCA77u;
    return t ^ (t >> 13);
}

// A thread for each key and each share of the values, and a trip to the answer for every single value.
extern "C" __global__ void atomics(const u32 *values, u32 count, const u32 *keys, u32 key_count, u32 *answers) {
    u32 at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= key_count) return;
    for (u32 i = blockIdx.y; i < count; i += gridDim.y) atomicAdd(&answers[at], twist(values[i] ^ keys[at]));
}

// The same, but each thread adds up what is its own before it goes there.
extern "C" __global__ void sums(const u32 *values, u32 count, const u32 *keys, u32 key_count, u32 *answers) {
    u32 at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= key_count) return;
    u32 key = keys[at], sum = 0;
    for (u32 i = blockIdx.y; i < count; i += gridDim.y) sum += twist(values[i] ^ key);
    atomicAdd(&answers[at], sum);
}

// A block reads each tile of values once, into memory of its own, and every thread has several keys at hand.
extern "C" __global__ void tiles(const u32 *values, u32 count, const u32 *keys, u32 key_count, u32 *answers) {
    __shared__ u32 tile[TILE];
    u32 first = blockIdx.x * THREADS * KEYS + threadIdx.x;
    u32 mine[KEYS], sum[KEYS];
#pragma unroll
    for (u32 k = 0; k < KEYS; k++) {
        u32 at = first + k * THREADS;
        mine[k] = at < key_count ? keys[at] : 0;
        sum[k] = 0;
    }
    for (u32 start = blockIdx.y * TILE; start < count; start += gridDim.y * TILE) {
        u32 here = min((u32)TILE, count - start);
        __syncthreads();
        for (u32 i = threadIdx.x; i < here; i += THREADS) tile[i] = values[start + i];
        __syncthreads();
        for (u32 i = 0; i < here; i++) {
            u32 value = tile[i];
#pragma unroll
            for (u32 k = 0; k < KEYS; k++) sum[k] += twist(value ^ mine[k]);
        }
    }
#pragma unroll
    for (u32 k = 0; k < KEYS; k++) {
        u32 at = first + k * THREADS;
        if (at < key_count) atomicAdd(&answers[at], sum[k]);
    }
}
