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

type Ports = Pick<Settings, 'SERVICE_PORT' | 'SERVICE_HTTP_BIND' | 'SERVICE_ADMIN_BIND'>;

/** Listeners in the order in which they are opened. */
export function listenersOf(settings: Ports): { readonly admin: Listener; readonly data: Listener } {
  const bare = (host: string): string => host.replace(/^\[|\]$/g, '');
  const admin = parseBind('SERVICE_ADMIN_BIND', settings.SERVICE_ADMIN_BIND);
  return {
    admin: { setting: 'SERVICE_ADMIN_BIND', host: bare(admin.host), port: admin.port },
    data: { setting: 'SERVICE_PORT', host: bare(settings.SERVICE_HTTP_BIND), port: settings.SERVICE_PORT },
  };
}

/** Throws a ConfigError where a port is taken now: a start that fails leaves nothing behind. */
export async function checkFree(settings: Ports): Promise<void> {
  const { admin, data } = listenersOf(settings);
  for (const listener of [admin, data]) if (listener.port !== 0) await listenOn(listener, () => tryOut(listener));
}

/** Runs `listen`; an error that settings can mend names the one. */
export async function listenOn({ setting, host, port }: Listener, listen: () => Promise<unknown>): Promise<void> {
  try {
    await listen();
  } catch (error) {
    const why = reasons[(error as NodeJS.ErrnoException).code ?? ''];
    if (why === undefined) throw error;
    throw new ConfigError(`${setting}: ${host.includes(':') ? `[${host}]` : host}:${port} ${why}`);
  }
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use: stop whoever listens there, or name another port',
  EACCES: 'may not be listened on by this user: name a port from 1024 on',
  EADDRNOTAVAIL: 'is no address of this machine: name one that is',
  ENOTFOUND: 'is no address that can be found: name one that is',
};

function tryOut({ host, port }: Listener): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port }, () => server.close(() => resolve()));
  });
}
