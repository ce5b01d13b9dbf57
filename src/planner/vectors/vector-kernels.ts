/** The loops of `kernels/vector-kernels.ts`, over vectors where they rest. */
import { vectorKernelsCode } from '../kernels/vector-kernels-code.ts';

export interface VectorKernels {
  cosines(values: number, dims: number, query: number, selection: number, first: number, count: number, into: number): void;
  candidates(
    components: number,
    width: number,
    scales: number,
    bounds: number,
    query: number,
    scale: number,
    least: number,
    selection: number,
    first: number,
    count: number,
    into: number,
  ): number;
}

let vectorKernelsModule: WebAssembly.Module | null = null;
const kernelsByMemory = new WeakMap<WebAssembly.Memory, VectorKernels>();

export function kernelsIn(memory: WebAssembly.Memory): VectorKernels {
  let vectorKernels = kernelsByMemory.get(memory);
  if (!vectorKernels) {
    vectorKernelsModule ??= new WebAssembly.Module(Buffer.from(vectorKernelsCode, 'base64'));
    // The names and arguments of exports match the source: a test compares the compiled module with it.
    vectorKernels = new WebAssembly.Instance(vectorKernelsModule, { env: { memory } }).exports as unknown as VectorKernels;
    kernelsByMemory.set(memory, vectorKernels);
  }
  return vectorKernels;
}
