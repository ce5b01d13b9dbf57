/** `annals console`: a link that opens the console of a running server once, within a minute. */
import { ConfigError } from '../errors.ts';
import { exitCode } from './exit-codes.ts';
import { request } from './remote-server.ts';
import { withoutTrailing } from '../log/values/trim-end.ts';

export interface ConsoleOptions {
  readonly url: string;
}

export async function consoleCommand(options: ConsoleOptions): Promise<number> {
  const admin = process.env['SERVICE_ADMIN_TOKEN'];
  if (!admin) throw new ConfigError('annals console needs the admin credential in SERVICE_ADMIN_TOKEN');
  const url = withoutTrailing(options.url, '/');
  const remote = { url, headers: { authorization: `Bearer ${admin}` } };
  const { code } = (await request(remote, 'POST', '/admin/console/codes', ['code'], '{}')) as { code: string };
  process.stdout.write(`${url}/admin/console#code=${code}\n`);
  return exitCode.ok;
}
