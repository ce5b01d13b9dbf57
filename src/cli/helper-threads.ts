/**
 * Threads that the runtime brought along, behind the one that answers. What must hold: on one core, compiling and collecting
 * take what answering leaves them and not the other way round; a machine that can't say so is left as it is.
 *
 * Each of them would otherwise have the share of the thread that answers: four of them on one core stretch a turn of 10 ms
 * to 50. Far behind would be wrong as well: slow code runs until they have compiled it.
 */
import { readdirSync } from 'node:fs';
import { availableParallelism, getPriority, setPriority } from 'node:os';

const tasks = '/proc/self/task';
/** The runtime starts its timer and its four helpers before all else; what does file input and output comes after them. */
const helpers = 5;
const behind = 10;
const last = 19;

/** Before anybody asks for anything. */
export function putHelpersBehind(cores = availableParallelism()): void {
  if (cores > 1 || process.platform !== 'linux') return;
  const priority = Math.min(last, getPriority() + behind);
  const threads = readdirSync(tasks).map(Number);
  for (const thread of threads.sort((a, b) => a - b).slice(1, 1 + helpers)) {
    try {
      setPriority(thread, priority);
    } catch {
      // The machine does not let us: answers take longer while code is compiled.
      return;
    }
  }
}
