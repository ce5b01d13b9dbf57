/** The dependencies of every door over plain sockets, passed as arguments. */
import type { Clock, Ids, Random } from '../../clock.ts';
import type { Settings } from '../../config.ts';
import { ServiceError } from '../../errors.ts';
import { rateRefusal, type RateLimiter } from '../../governance/admission/rate-limit.ts';
import type { Authenticator } from '../../governance/authentication/authenticator.ts';
import { type Caller, tenantlessCaller } from '../../governance/caller.ts';
import type { Action, GateContract } from '../../governance/gate-contract.ts';
import type { PlannerDoor } from '../../planner/planner-contract.ts';
import { UnauthenticatedConnections } from './unauthenticated-connections.ts';
import { WireMemory } from './wire-memory.ts';

/** Bounds that all doors over plain sockets share. */
export interface WireBounds {
  readonly unauthenticated: UnauthenticatedConnections;
  readonly memory: WireMemory;
  /** A message is at most so long. */
  readonly messageBytesMax: number;
}

export function wireBounds(
  settings: Pick<Settings, 'SERVICE_WIRE_MESSAGE_MB' | 'SERVICE_WIRE_MEMORY_MB'>,
  clock: Clock,
): WireBounds {
  const memory = new WireMemory(settings.SERVICE_WIRE_MEMORY_MB << 20, clock);
  return { unauthenticated: new UnauthenticatedConnections(), memory, messageBytesMax: settings.SERVICE_WIRE_MESSAGE_MB << 20 };
}

export interface DoorDependencies {
  readonly gate: GateContract;
  readonly planner: PlannerDoor;
  readonly authenticator: Pick<Authenticator, 'scram' | 'provenCaller' | 'passwordCaller' | 'renew'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  /** Lets others have their turn. */
  readonly yieldTurn: () => Promise<void>;
  readonly readLimit: RateLimiter;
  readonly writeLimit: RateLimiter;
  readonly wire: WireBounds;
  /** Bounds how many refused strangers are recorded. */
  readonly refusalRecordLimit: RateLimiter;
  /** Whether a caller has to say for which organisation it comes. */
  readonly organizationRequired: boolean;
  /** Reports an internal failure to the operator. */
  readonly reportFailure: (error: unknown) => void;
}

/** Strangers are recorded too, but can't fill the log: beyond so many in a second they are only counted. */
export const refusalRecordsPerSecond = 50;

/** Throws REL_RATE_LIMITED where the address has asked for too much in this second. */
export function admitAddress(
  { clock }: Pick<DoorDependencies, 'clock'>,
  limiter: RateLimiter,
  address: string | null,
  tokens = 1,
): void {
  const verdict = limiter.take(address ?? '', clock.monotonicMs(), tokens);
  if (!verdict.allowed) throw rateRefusal(limiter, verdict);
}

/** Leaves the access record of a refusal before the gate; the gate's own verdict wins. */
export async function recordRefusal(
  parts: Pick<DoorDependencies, 'gate' | 'ids' | 'refusalRecordLimit' | 'clock'>,
  caller: Caller | { readonly door: string; readonly clientIp: string | null },
  action: Action,
  error: ServiceError,
  correlationId: string | null = null,
): Promise<ServiceError> {
  const known = 'principal' in caller;
  if (!known && !parts.refusalRecordLimit.take('', parts.clock.monotonicMs()).allowed) return error;
  const asked = { action, purpose: null, correlationId: correlationId ?? parts.ids.next(), recordOnly: true } as const;
  const who = known ? caller : { ...tenantlessCaller('unauthenticated', 'none', caller.door), clientIp: caller.clientIp };
  try {
    return await parts.gate.invoke(who, asked, () => Promise.reject(error));
  } catch (thrown) {
    return thrown instanceof ServiceError ? thrown : new ServiceError('REL_INTERNAL', 'internal error', { cause: thrown });
  }
}
