/** Ports that doors listen on; an error about a port names the setting that chose it. */
import { createServer } from 'node:net';
import { parseBind, type SettingName, type Settings } from '../../config.ts';
import { ConfigError } from '../../errors.ts';

export interface Listener {
  /** Names the port. */
  readonly setting: SettingName;
  readonly host: string;
  readonly port: number;
}

type PortSettings = Pick<Settings, 'SERVICE_PORT' | 'SERVICE_HTTP_BIND' | 'SERVICE_ADMIN_BIND'>;

/** Listeners in the order in which they are opened. */
export function listenersOf(portSettings: PortSettings): { readonly admin: Listener; readonly data: Listener } {
  const withoutBrackets = (bindHost: string): string => bindHost.replace(/^\[|\]$/g, '');
  const adminBind = parseBind('SERVICE_ADMIN_BIND', portSettings.SERVICE_ADMIN_BIND);
  return {
    admin: { setting: 'SERVICE_ADMIN_BIND', host: withoutBrackets(adminBind.host), port: adminBind.port },
    data: { setting: 'SERVICE_PORT', host: withoutBrackets(portSettings.SERVICE_HTTP_BIND), port: portSettings.SERVICE_PORT },
  };
}

/** Throws a ConfigError where a port is taken now: a start that fails leaves nothing behind. */
export async function checkFree(portSettings: PortSettings): Promise<void> {
  const { admin: adminListener, data: dataListener } = listenersOf(portSettings);
  for (const checkedListener of [adminListener, dataListener])
    if (checkedListener.port !== 0) await listenOn(checkedListener, () => tryListening(checkedListener));
}

/** Runs `startListening`; an error that settings can mend names the one. */
export async function listenOn(
  { setting: portSetting, host, port }: Listener,
  startListening: () => Promise<unknown>,
): Promise<void> {
  try {
    await startListening();
  } catch (listenError) {
    const listenFailure = listenFailures[(listenError as NodeJS.ErrnoException).code ?? ''];
    if (listenFailure === undefined) throw listenError;
    throw new ConfigError(`${portSetting}: ${host.includes(':') ? `[${host}]` : host}:${port} ${listenFailure}`);
  }
}

const listenFailures: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use: stop whoever listens there, or name another port',
  EACCES: 'may not be listened on by this user: name a port from 1024 on',
  EADDRNOTAVAIL: 'is no address of this machine: name one that is',
  ENOTFOUND: 'is no address that can be found: name one that is',
};

function tryListening({ host, port }: Listener): Promise<void> {
  return new Promise((onFree, onTaken) => {
    const probeServer = createServer();
    probeServer.once('error', onTaken);
    probeServer.listen({ host, port }, () => probeServer.close(() => onFree()));
  });
}
