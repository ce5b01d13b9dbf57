/** Every door of the specification at a glance: its settings, how it is guarded, and whether this version has it. */
import type { SettingName, Settings } from '../config.ts';
import { ConfigError } from '../errors.ts';
import type { OptionalDoor } from '../governance/tenancy/profile-rules.ts';
import { type DoorStatus, isEnabled } from './door.ts';

export interface DoorRow {
  readonly name: string;
  readonly port: SettingName;
  /** The setting that enables the door; null: it is always on. */
  readonly enable: SettingName | null;
  readonly built: boolean;
  /** `token`: opens with SERVICE_BEARER_TOKEN; `explicit`: only when asked for. */
  readonly opens: 'always' | 'token' | 'explicit';
}

const doorRow = (
  doorName: string,
  portSetting: SettingName,
  enableSetting: SettingName | null,
  opensDoor: DoorRow['opens'],
  isBuilt: boolean,
): DoorRow => ({
  name: doorName,
  port: portSetting,
  enable: enableSetting,
  opens: opensDoor,
  built: isBuilt,
});

export const doors: readonly DoorRow[] = [
  doorRow('http', 'SERVICE_PORT', null, 'always', true),
  doorRow('grpc', 'SERVICE_GRPC_PORT', 'SERVICE_GRPC_ENABLE', 'token', true),
  doorRow('flight', 'SERVICE_FLIGHT_PORT', 'SERVICE_FLIGHT_ENABLE', 'explicit', true),
  doorRow('object', 'SERVICE_OBJECT_PORT', 'SERVICE_OBJECT_ENABLE', 'token', true),
  doorRow('relational', 'SERVICE_RELATIONAL_PORT', 'SERVICE_RELATIONAL_ENABLE', 'token', true),
  doorRow('columnar-http', 'SERVICE_COLUMNAR_HTTP_PORT', 'SERVICE_COLUMNAR_HTTP_ENABLE', 'token', true),
  doorRow('columnar-native', 'SERVICE_COLUMNAR_NATIVE_PORT', 'SERVICE_COLUMNAR_NATIVE_ENABLE', 'token', true),
  doorRow('graph-http', 'SERVICE_GRAPH_HTTP_PORT', 'SERVICE_GRAPH_HTTP_ENABLE', 'token', true),
  doorRow('graph-binary', 'SERVICE_GRAPH_BINARY_PORT', 'SERVICE_GRAPH_BINARY_ENABLE', 'token', true),
  doorRow('kv', 'SERVICE_KV_PORT', 'SERVICE_KV_ENABLE', 'token', true),
  doorRow('document', 'SERVICE_DOCUMENT_PORT', 'SERVICE_DOCUMENT_ENABLE', 'token', true),
];

/** Optional doors, named as in settings: `RELATIONAL` of `SERVICE_RELATIONAL_ENABLE`. */
export const builtDoors: readonly OptionalDoor[] = doors.flatMap(({ built: isBuilt, enable: enableSetting }) =>
  isBuilt && enableSetting !== null ? [enableSetting.slice('SERVICE_'.length, -'_ENABLE'.length) as OptionalDoor] : [],
);

/** Doors of this start. A door that is not built is reported, and fatal only when it was asked for by name. */
export function doorStatuses(doorSettings: Settings): DoorStatus[] {
  return doors.map((doorEntry) => {
    const doorPort = doorSettings[doorEntry.port] as number;
    if (doorEntry.enable === null) return { name: doorEntry.name, port: doorPort, state: 'listening' };
    const isExplicitlyEnabled = doorSettings[doorEntry.enable] as boolean | null;
    if (!doorEntry.built) {
      if (isExplicitlyEnabled === true) throw new ConfigError(`${doorEntry.enable}: this version has no ${doorEntry.name} door`);
      return { name: doorEntry.name, port: null, state: 'absent' };
    }
    const tokenAndProfile = { bearerToken: doorSettings.SERVICE_BEARER_TOKEN !== null, profile: doorSettings.SERVICE_PROFILE };
    const isDoorEnabled = isEnabled(doorEntry.name, {
      ...tokenAndProfile,
      explicit: doorEntry.opens === 'explicit' ? isExplicitlyEnabled === true : isExplicitlyEnabled,
    });
    const isDoorOpen = isDoorEnabled && !isClosedByMode(doorEntry.name, doorSettings);
    return { name: doorEntry.name, port: isDoorOpen ? doorPort : null, state: isDoorOpen ? 'listening' : 'off' };
  });
}

/** Source: specification, "Transport": under strict, asking for these doors in plain text closes them. */
function isClosedByMode(
  doorName: string,
  { SERVICE_SECURITY_MODE: securityMode, SERVICE_GRPC_PLAINTEXT_OK: isGrpcPlaintext }: Settings,
): boolean {
  return (doorName === 'grpc' || doorName === 'flight') && securityMode === 'strict' && isGrpcPlaintext;
}
