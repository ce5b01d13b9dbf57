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

const httpSessionsMax = 1_000;
const sessionDefaultSecs = 60;
const sessionSecsMax = 3_600;

export interface SessionTerms {
  readonly id: string;
  readonly timeout: string | null;
  /** The session must exist already. */
  readonly isChecked: boolean;
}

export class HttpSessions {
  readonly #settingsBySession: LRUCache<string, ColumnarSettings>;

  constructor(sessionClock: Pick<Clock, 'monotonicMs'>) {
    this.#settingsBySession = new LRUCache({
      max: httpSessionsMax,
      ttl: 1,
      perf: { now: () => Math.floor(sessionClock.monotonicMs()) + 1 },
    });
  }

  settingsOf(
    { principal, path: callerPath }: Caller,
    { id: sessionId, timeout: sessionTimeout, isChecked: mustExist }: SessionTerms,
  ): ColumnarSettings {
    const timeoutSecs = sessionTimeout === null ? sessionDefaultSecs : Number(sessionTimeout);
    if (!Number.isInteger(timeoutSecs) || timeoutSecs < 1 || timeoutSecs > sessionSecsMax)
      throw new ServiceError('REL_INVALID', `session_timeout is 1 to ${sessionSecsMax} seconds`);
    const sessionName = JSON.stringify([principal, callerPath, sessionId]);
    const knownSettings = this.#settingsBySession.get(sessionName);
    if (knownSettings === undefined && mustExist)
      throw refusedAs('session', new ServiceError('REL_NOT_FOUND', `Session ${sessionId.slice(0, 100)} is not found`));
    const sessionSettings = knownSettings ?? new ColumnarSettings();
    this.#settingsBySession.set(sessionName, sessionSettings, { ttl: timeoutSecs * 1000 });
    return sessionSettings;
  }
}
