/** `annals console`: a link that opens the console of a running server once, within a minute. */
import { ConfigError } from '../errors.ts';
import { exitCode } from './exit-codes.ts';
import { request } from './remote-server.ts';
import { withoutTrailing } from '../log/values/trim-end.ts';

export interface ConsoleOptions {
  readonly url: string;
}

export async function consoleCommand(consoleOptions: ConsoleOptions): Promise<number> {
  const adminCredential = process.env['SERVICE_ADMIN_TOKEN'];
  if (!adminCredential) throw new ConfigError('annals console needs the admin credential in SERVICE_ADMIN_TOKEN');
  const adminUrl = withoutTrailing(consoleOptions.url, '/');
  const adminServer = { url: adminUrl, headers: { authorization: `Bearer ${adminCredential}` } };
  const { code: consoleCode } = (await request(adminServer, 'POST', '/admin/console/codes', ['code'], '{}')) as { code: string };
  process.stdout.write(`${adminUrl}/admin/console#code=${consoleCode}\n`);
  return exitCode.ok;
}
