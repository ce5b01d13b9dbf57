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
  wireSettings: Pick<Settings, 'SERVICE_WIRE_MESSAGE_MB' | 'SERVICE_WIRE_MEMORY_MB'>,
  wireClock: Clock,
): WireBounds {
  const wireMemory = new WireMemory(wireSettings.SERVICE_WIRE_MEMORY_MB << 20, wireClock);
  return {
    unauthenticated: new UnauthenticatedConnections(),
    memory: wireMemory,
    messageBytesMax: wireSettings.SERVICE_WIRE_MESSAGE_MB << 20,
  };
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
  addressLimiter: RateLimiter,
  clientAddress: string | null,
  rateTokens = 1,
): void {
  const rateVerdict = addressLimiter.take(clientAddress ?? '', clock.monotonicMs(), rateTokens);
  if (!rateVerdict.allowed) throw rateRefusal(addressLimiter, rateVerdict);
}

/** Leaves the access record of a refusal before the gate; the gate's own verdict wins. */
export async function recordRefusal(
  refusalParts: Pick<DoorDependencies, 'gate' | 'ids' | 'refusalRecordLimit' | 'clock'>,
  caller: Caller | { readonly door: string; readonly clientIp: string | null },
  refusedAction: Action,
  refusedError: ServiceError,
  correlationId: string | null = null,
): Promise<ServiceError> {
  const isAuthenticated = 'principal' in caller;
  if (!isAuthenticated && !refusalParts.refusalRecordLimit.take('', refusalParts.clock.monotonicMs()).allowed)
    return refusedError;
  const recordRequest = {
    action: refusedAction,
    purpose: null,
    correlationId: correlationId ?? refusalParts.ids.next(),
    recordOnly: true,
  } as const;
  const refusedCaller = isAuthenticated
    ? caller
    : { ...tenantlessCaller('unauthenticated', 'none', caller.door), clientIp: caller.clientIp };
  try {
    return await refusalParts.gate.invoke(refusedCaller, recordRequest, () => Promise.reject(refusedError));
  } catch (thrownRefusal) {
    return thrownRefusal instanceof ServiceError
      ? thrownRefusal
      : new ServiceError('REL_INTERNAL', 'internal error', { cause: thrownRefusal });
  }
}
