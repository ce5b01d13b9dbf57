/** The interface of every door to the composition root, and the rule by which a compatibility door opens. */
import { ConfigError } from '../errors.ts';

export interface Door {
  readonly name: string;
  /** Port in use once started: the one asked for, or the one that the system chose for 0. */
  readonly port: number;
  start(): Promise<void>;
  /** Refuses new work from here on, in the protocol's own words; new connections still get this answer. */
  drain(): void;
  /** Closes its listeners too: lets work in hand finish, then closes. Safe to call twice. */
  stop(): Promise<void>;
}

/** How a door stands, for the start message and `/status`. */
export interface DoorStatus {
  readonly name: string;
  readonly port: number | null;
  readonly state: 'listening' | 'off' | 'absent';
}

export interface EnablingConditions {
  /** `SERVICE_<DOOR>_ENABLE`; null when unset. */
  readonly explicit: boolean | null;
  readonly bearerToken: boolean;
  readonly profile: 'free' | 'server' | 'cluster';
}

/**
 * Source: specification, "Door enabling": an explicit setting wins, else a door follows SERVICE_BEARER_TOKEN. Opening
 * one without a token is fatal on server and cluster.
 */
export function isEnabled(doorName: string, enablingConditions: EnablingConditions): boolean {
  if (enablingConditions.explicit === true && !enablingConditions.bearerToken && enablingConditions.profile !== 'free') {
    throw new ConfigError(
      `the ${doorName} door is enabled without SERVICE_BEARER_TOKEN, which ${enablingConditions.profile} does not allow`,
    );
  }
  return enablingConditions.explicit ?? enablingConditions.bearerToken;
}
