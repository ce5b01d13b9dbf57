/** What the system tells of the main thread of a process. */
import { readFileSync } from 'node:fs';

export interface ThreadTimes {
  /** CPU time. */
  readonly computedMs: number;
  /** It could have computed, and no core was free. */
  readonly readyMs: number;
}

/** Where the system doesn't tell: of this process the CPU time of all threads, which is more, and nothing else. */
export function threadOf(pid: number): ThreadTimes {
  try {
    const [computed, ready] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ').map(Number);
    return { computedMs: computed! / 1e6, readyMs: ready! / 1e6 };
  } catch {
    const { user, system } = process.cpuUsage();
    return { computedMs: (user + system) / 1000, readyMs: 0 };
  }
}

/** Memory of a process that is in the machine's. */
export function residentBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * 4_096;
}
