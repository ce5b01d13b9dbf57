/**
 * Checks that a start must pass, as one table of rules: each looks at settings and facts and says in one line what to set.
 * Malformed and unknown settings, the removed profile `lite` among them, were refused when the settings were read.
 */
import { isLoopback, parseBind, type Settings } from '../../config.ts';
import { ConfigError } from '../../errors.ts';

/** Names of the doors that have a port and an enabling setting of their own, as in `SERVICE_<DOOR>_ENABLE`. */
export const optionalDoors = [
  'GRPC',
  'FLIGHT',
  'OBJECT',
  'RELATIONAL',
  'COLUMNAR_HTTP',
  'COLUMNAR_NATIVE',
  'GRAPH_HTTP',
  'GRAPH_BINARY',
  'KV',
  'DOCUMENT',
] as const;

export type OptionalDoor = (typeof optionalDoors)[number];

export interface BootConditions {
  /** Doors that this build can open. */
  readonly builtDoors: readonly OptionalDoor[];
}

/** Every reason not to start, in a fixed order; empty when there is none. */
export function bootRefusals(settings: Settings, bootConditions: BootConditions): string[] {
  return bootRules.flatMap((bootRule) => bootRule(settings, bootConditions));
}

type BootRule = (settings: Settings, facts: BootConditions) => readonly string[];

const isServer = (settings: Settings): boolean => settings.SERVICE_PROFILE !== 'free';

const refuseWhen = (refused: boolean, line: string): readonly string[] => (refused ? [line] : []);

/** Source: specification, "Deployment profiles", "Compatibility doors" 7 and "Authentication" 3, 4, 7, 9. */
const bootRules: readonly BootRule[] = [
  transportRefusals,
  adminBindRefusals,
  securityModeRefusals,
  (settings) =>
    refuseWhen(
      isServer(settings) && settings.SERVICE_BEARER_TOKEN === null,
      `SERVICE_BEARER_TOKEN must be set on the ${settings.SERVICE_PROFILE} profile`,
    ),
  (settings) =>
    refuseWhen(
      isServer(settings) && settings.SERVICE_ERASURE_SIGNING_KEY === null,
      `SERVICE_ERASURE_SIGNING_KEY must be set on the ${settings.SERVICE_PROFILE} profile: 32 bytes as hex or base64`,
    ),
  kekRefusals,
  purposeRefusals,
  tenancyRefusals,
  (settings, facts) => optionalDoors.flatMap((door) => doorRefusals(door, settings, facts)),
];

function transportRefusals(settings: Settings): readonly string[] {
  const { SERVICE_TLS_CERT: tlsCertificate, SERVICE_TLS_KEY: tlsKey } = settings;
  if ((tlsCertificate === null) !== (tlsKey === null)) return ['SERVICE_TLS_CERT and SERVICE_TLS_KEY must be set together'];
  return refuseWhen(
    tlsCertificate === null && !settings.SERVICE_PLAINTEXT_OK,
    isLoopback(settings.SERVICE_HTTP_BIND)
      ? 'SERVICE_PLAINTEXT_OK=false needs SERVICE_TLS_CERT and SERVICE_TLS_KEY'
      : `SERVICE_HTTP_BIND=${settings.SERVICE_HTTP_BIND} is reachable from other machines: ` +
          'set SERVICE_TLS_CERT and SERVICE_TLS_KEY, or SERVICE_PLAINTEXT_OK=true behind a proxy that ends TLS',
  );
}

function adminBindRefusals(settings: Settings): readonly string[] {
  try {
    const { host } = parseBind('SERVICE_ADMIN_BIND', settings.SERVICE_ADMIN_BIND);
    return refuseWhen(!isLoopback(host), `SERVICE_ADMIN_BIND=${settings.SERVICE_ADMIN_BIND} must be a loopback address`);
  } catch (error) {
    if (error instanceof ConfigError) return [error.message];
    throw error;
  }
}

function securityModeRefusals(settings: Settings): readonly string[] {
  if (settings.SERVICE_SECURITY_MODE === 'open') return [];
  const securityOptOuts = ['SERVICE_KMS_LOCAL_DEV', 'SERVICE_UNSAFE_LOCAL_FENCING'] as const;
  return securityOptOuts.filter((name) => settings[name]).map((name) => `${name}=true needs SERVICE_SECURITY_MODE=open`);
}

function kekRefusals(settings: Settings): readonly string[] {
  const isKekGiven = settings.SERVICE_KEK !== null || settings.SERVICE_KEK_FILE !== null;
  const isLocalKms = settings.SERVICE_KMS_LOCAL_DEV && settings.SERVICE_SECURITY_MODE === 'open';
  return refuseWhen(
    isServer(settings) && !isKekGiven && !isLocalKms,
    `SERVICE_KEK or SERVICE_KEK_FILE must be set on the ${settings.SERVICE_PROFILE} profile`,
  );
}

function purposeRefusals(settings: Settings): readonly string[] {
  return refuseWhen(
    settings.SERVICE_PURPOSE_MODE === 'strict' && settings.SERVICE_PURPOSES.length === 0,
    'SERVICE_PURPOSES must name at least one purpose, for example SERVICE_PURPOSES=analytics, while SERVICE_PURPOSE_MODE is strict',
  );
}

function tenancyRefusals(settings: Settings): readonly string[] {
  if (settings.SERVICE_TENANCY_MODE !== 'multi') return [];
  if (settings.SERVICE_PROFILE !== 'cluster') return ['SERVICE_TENANCY_MODE=multi needs SERVICE_PROFILE=cluster'];
  return refuseWhen(
    settings.SERVICE_MAX_TENANTS === 1,
    'SERVICE_TENANCY_MODE=multi needs a tenant ceiling above 1: raise SERVICE_MAX_TENANTS',
  );
}

/** About doors that are asked for by name; those that merely follow the bearer token stay off where they can't open. */
function doorRefusals(door: OptionalDoor, settings: Settings, facts: BootConditions): readonly string[] {
  const doorSetting = `SERVICE_${door}_ENABLE` as const;
  if (settings[doorSetting] !== true) return [];
  if (!facts.builtDoors.includes(door)) return [`${doorSetting}=true: this version has no such door`];
  // Many tenants need no rule here: doors then refuse the shared secret at login, save the relational one, whose users name a tenant.
  const needsToken = isServer(settings) || door === 'RELATIONAL';
  return refuseWhen(needsToken && settings.SERVICE_BEARER_TOKEN === null, `${doorSetting}=true needs SERVICE_BEARER_TOKEN`);
}
