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
const workerLooksAtOnce = 1 << 22;
const workerStepsAtOnce = 256;

export const graphJob: SteppedJob<GraphRequest, GraphReply> = {
  module: import.meta.url,
  name: 'graphJob',
  *steps({ arrays, nodes, named, call, memory }) {
    const graphWork: Work = { looks: 0, heldBytes: 0 };
    const graphMemoryMeter = new MemoryMeter(memory.bytesMax, memory.bytes);
    const workerGraph = new Graph({ ...arrays, texts: namedNodeTexts(nodes, named) });
    const answerSteps = answerCall(
      algorithmOf(call.algorithm),
      workerGraph,
      countedCall(call, graphWork, graphMemoryMeter),
      graphWork,
    );
    for (let reportedLooks = 0, graphStepCount = 0; ; graphStepCount++) {
      const graphStep = answerSteps.next();
      if (graphStep.done) return { ...graphStep.value, work: graphWork };
      if (graphStepCount % workerStepsAtOnce !== workerStepsAtOnce - 1 && graphWork.looks - reportedLooks < workerLooksAtOnce)
        continue;
      reportedLooks = graphWork.looks;
      yield { done: reportedLooks, of: call.looksMax };
    }
  },
};

/** No algorithm reads a text: its answer is in numbers of nodes. */
function namedNodeTexts(nodeCount: number, namedNodes: ReadonlyMap<string, number>): NodeTexts {
  const noNodeText = (): never => {
    throw new Error('texts of nodes are not in a worker');
  };
  return { size: nodeCount, numberOf: (text) => namedNodes.get(text) ?? -1, text: noNodeText, bytesOf: noNodeText, bytes: 0 };
}
