/** Hands out turns of the event loop to all work of a store, from one queue in which kinds of work give way to each other. */
import type { Clock } from './clock.ts';
import { TurnQueue, type WorkKind } from './planner/execution/turn-queue.ts';
import { TurnsBehind } from './planner/execution/background-turns.ts';

export class EventLoopTurns {
  readonly #turnQueue = new TurnQueue();
  readonly #scheduledTurn: (() => Promise<void>) | null;
  readonly #turnsBehind: TurnsBehind;
  /** Gives way to callers who ask; for work whose end nobody waits for. */
  readonly yieldBehind: () => Promise<void>;

  /** `scheduledTurn` stands in for the queue: a simulation schedules by itself. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'sleep'>, scheduledTurn: (() => Promise<void>) | null) {
    this.#scheduledTurn = scheduledTurn;
    this.#turnsBehind = new TurnsBehind(clock, this.yieldFor('chores'));
    this.yieldBehind = scheduledTurn ?? (() => this.#turnsBehind.next());
  }

  /** The function by which work of a kind gives way to other work. */
  yieldFor(kind: WorkKind): () => Promise<void> {
    return this.#scheduledTurn ?? (() => this.#turnQueue.next(kind));
  }

  /** Whether queries wait for a turn. */
  isCrowded(): boolean {
    return this.#turnQueue.waits('queries');
  }

  /** A caller asks for something. */
  noteRequest(): void {
    this.#turnsBehind.noteRequest();
  }
}
