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

let module: WebAssembly.Module | null = null;
const instances = new WeakMap<WebAssembly.Memory, VectorKernels>();

export function kernelsIn(memory: WebAssembly.Memory): VectorKernels {
  let kernels = instances.get(memory);
  if (!kernels) {
    module ??= new WebAssembly.Module(Buffer.from(vectorKernelsCode, 'base64'));
    // The names and arguments of exports match the source: a test compares the compiled module with it.
    kernels = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as VectorKernels;
    instances.set(memory, kernels);
  }
  return kernels;
}
