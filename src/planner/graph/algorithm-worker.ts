/** An algorithm over a graph, in a worker: the arrays of the graph lie in shared memory, so none of them is copied. */
import type { SteppedJob } from '../../log/threads/stepping-job.ts';
import { MemoryMeter } from '../operators/operator.ts';
import { algorithmOf } from './algorithms/all.ts';
import { type Answered, answerCall, type CallArguments, countedCall, type Work } from './counted-call.ts';
import { Graph, type GraphData, type NodeTexts } from './graph.ts';

export interface GraphRequest {
  readonly arrays: Omit<GraphData, 'texts'>;
  readonly nodes: number;
  /** Nodes that the call names. */
  readonly named: ReadonlyMap<string, number>;
  readonly call: CallArguments;
  /** Bytes that the query may hold, and those that it holds already. */
  readonly memory: { readonly bytesMax: number; readonly bytes: number };
}

export interface GraphReply extends Answered {
  readonly work: Work;
}

/** Looks, and steps, between two messages: some tens of milliseconds, as each of them waits for a turn of the event loop. */
const looksAtOnce = 1 << 22;
const stepsAtOnce = 256;

export const graphJob: SteppedJob<GraphRequest, GraphReply> = {
  module: import.meta.url,
  name: 'graphJob',
  *steps({ arrays, nodes, named, call, memory }) {
    const work: Work = { looks: 0, heldBytes: 0 };
    const meter = new MemoryMeter(memory.bytesMax, memory.bytes);
    const graph = new Graph({ ...arrays, texts: textsOf(nodes, named) });
    const running = answerCall(algorithmOf(call.algorithm), graph, countedCall(call, work, meter), work);
    for (let reportedLooks = 0, steps = 0; ; steps++) {
      const step = running.next();
      if (step.done) return { ...step.value, work };
      if (steps % stepsAtOnce !== stepsAtOnce - 1 && work.looks - reportedLooks < looksAtOnce) continue;
      reportedLooks = work.looks;
      yield { done: reportedLooks, of: call.looksMax };
    }
  },
};

/** No algorithm reads a text: its answer is in numbers of nodes. */
function textsOf(size: number, named: ReadonlyMap<string, number>): NodeTexts {
  const none = (): never => {
    throw new Error('texts of nodes are not in a worker');
  };
  return { size, numberOf: (text) => named.get(text) ?? -1, text: none, bytesOf: none, bytes: 0 };
}
