/**
 * Settings that a client keeps under `session_id`: those of SET hold for its next requests, for 60 s or the timeout that it
 * gives.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import { refusedAs } from './errors.ts';
import { ColumnarSettings } from './settings.ts';

const sessionsMax = 1_000;
const defaultSeconds = 60;
const secondsMax = 3_600;

export interface SessionTerms {
  readonly id: string;
  readonly timeout: string | null;
  /** The session must exist already. */
  readonly isChecked: boolean;
}

export class HttpSessions {
  readonly #sessions: LRUCache<string, ColumnarSettings>;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#sessions = new LRUCache({ max: sessionsMax, ttl: 1, perf: { now: () => Math.floor(clock.monotonicMs()) + 1 } });
  }

  settingsOf({ principal, path }: Caller, { id, timeout, isChecked }: SessionTerms): ColumnarSettings {
    const seconds = timeout === null ? defaultSeconds : Number(timeout);
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > secondsMax)
      throw new ServiceError('REL_INVALID', `session_timeout is 1 to ${secondsMax} seconds`);
    const name = JSON.stringify([principal, path, id]);
    const known = this.#sessions.get(name);
    if (known === undefined && isChecked)
      throw refusedAs('session', new ServiceError('REL_NOT_FOUND', `Session ${id.slice(0, 100)} is not found`));
    const settings = known ?? new ColumnarSettings();
    this.#sessions.set(name, settings, { ttl: seconds * 1000 });
    return settings;
  }
}
