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

const row = (name: string, port: SettingName, enable: SettingName | null, opens: DoorRow['opens'], built: boolean): DoorRow => ({
  name,
  port,
  enable,
  opens,
  built,
});

export const doors: readonly DoorRow[] = [
  row('http', 'SERVICE_PORT', null, 'always', true),
  row('grpc', 'SERVICE_GRPC_PORT', 'SERVICE_GRPC_ENABLE', 'token', true),
  row('flight', 'SERVICE_FLIGHT_PORT', 'SERVICE_FLIGHT_ENABLE', 'explicit', true),
  row('object', 'SERVICE_OBJECT_PORT', 'SERVICE_OBJECT_ENABLE', 'token', true),
  row('relational', 'SERVICE_RELATIONAL_PORT', 'SERVICE_RELATIONAL_ENABLE', 'token', true),
  row('columnar-http', 'SERVICE_COLUMNAR_HTTP_PORT', 'SERVICE_COLUMNAR_HTTP_ENABLE', 'token', true),
  row('columnar-native', 'SERVICE_COLUMNAR_NATIVE_PORT', 'SERVICE_COLUMNAR_NATIVE_ENABLE', 'token', true),
  row('graph-http', 'SERVICE_GRAPH_HTTP_PORT', 'SERVICE_GRAPH_HTTP_ENABLE', 'token', true),
  row('graph-binary', 'SERVICE_GRAPH_BINARY_PORT', 'SERVICE_GRAPH_BINARY_ENABLE', 'token', true),
  row('kv', 'SERVICE_KV_PORT', 'SERVICE_KV_ENABLE', 'token', true),
  row('document', 'SERVICE_DOCUMENT_PORT', 'SERVICE_DOCUMENT_ENABLE', 'token', true),
];

/** Optional doors, named as in settings: `RELATIONAL` of `SERVICE_RELATIONAL_ENABLE`. */
export const builtDoors: readonly OptionalDoor[] = doors.flatMap(({ built, enable }) =>
  built && enable !== null ? [enable.slice('SERVICE_'.length, -'_ENABLE'.length) as OptionalDoor] : [],
);

/** Doors of this start. A door that is not built is reported, and fatal only when it was asked for by name. */
export function doorStatuses(settings: Settings): DoorStatus[] {
  return doors.map((door) => {
    const port = settings[door.port] as number;
    if (door.enable === null) return { name: door.name, port, state: 'listening' };
    const explicit = settings[door.enable] as boolean | null;
    if (!door.built) {
      if (explicit === true) throw new ConfigError(`${door.enable}: this version has no ${door.name} door`);
      return { name: door.name, port: null, state: 'absent' };
    }
    const facts = { bearerToken: settings.SERVICE_BEARER_TOKEN !== null, profile: settings.SERVICE_PROFILE };
    const on = isEnabled(door.name, { ...facts, explicit: door.opens === 'explicit' ? explicit === true : explicit });
    const open = on && !isClosedByMode(door.name, settings);
    return { name: door.name, port: open ? port : null, state: open ? 'listening' : 'off' };
  });
}

/** Source: specification, "Transport": under strict, asking for these doors in plain text closes them. */
function isClosedByMode(name: string, { SERVICE_SECURITY_MODE: mode, SERVICE_GRPC_PLAINTEXT_OK: isPlain }: Settings): boolean {
  return (name === 'grpc' || name === 'flight') && mode === 'strict' && isPlain;
}
