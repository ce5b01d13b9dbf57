/** `annals token mint`: through a running server's admin listener, or straight into the data directory of a stopped one. */
import { systemClock, systemRandom } from '../clock.ts';
import { ConfigError } from '../errors.ts';
import { draftToken, type TokenRequest } from '../governance/authentication/bearer-tokens.ts';
import type { Service } from '../service.ts';
import { exitCode } from './exit-codes.ts';
import { operator, withService, type DirectoryOptions } from './local-store.ts';
import { request } from './remote-server.ts';
import { withoutTrailing } from '../log/values/trim-end.ts';

export interface MintOptions extends DirectoryOptions {
  readonly url?: string;
  readonly tenant?: string;
  readonly organization?: string;
  readonly principal?: string;
  readonly role: readonly string[];
  readonly tokenPurpose: readonly string[];
  readonly expiresIn?: string;
}

export async function mintTokenCommand(options: MintOptions, version: string): Promise<number> {
  const expiresInSecs = options.expiresIn === undefined ? undefined : Number(options.expiresIn);
  if (expiresInSecs !== undefined && !Number.isSafeInteger(expiresInSecs))
    throw new ConfigError('--expires-in: expected whole seconds');
  if (options.url !== undefined) {
    const admin = process.env['SERVICE_ADMIN_TOKEN'];
    if (!admin) throw new ConfigError('--url needs the admin credential in SERVICE_ADMIN_TOKEN');
    const body = {
      tenant_id: options.tenant,
      organization: options.organization,
      principal: options.principal,
      roles: options.role,
      purposes: options.tokenPurpose,
      expires_in_secs: expiresInSecs,
    };
    const remote = { url: withoutTrailing(options.url, '/'), headers: { authorization: `Bearer ${admin}` } };
    const minted = (await request(remote, 'POST', '/admin/tokens', ['token'], JSON.stringify(body))) as { token: string };
    process.stdout.write(`${minted.token}\n`);
    return exitCode.ok;
  }
  const token = await withService(options, version, (service) =>
    mintToken(service, {
      tenant: options.tenant,
      organization: options.organization,
      principal: options.principal,
      roles: options.role,
      purposes: options.tokenPurpose,
      expiresInSecs,
    }),
  );
  process.stdout.write(`${token}\n`);
  return exitCode.ok;
}

/** Mints through the gate like every write; the secret is in the return value only. */
export async function mintToken(service: Service, wanted: TokenRequest): Promise<string> {
  const drafted = draftToken(wanted, service.ids, systemRandom, systemClock.now());
  const caller = operator(null);
  await service.gate.invoke(caller, { action: 'administer', purpose: null, correlationId: service.ids.next() }, (invocation) =>
    invocation.submit({ kind: 'mint-token', token: drafted.record }, { sync: true }),
  );
  return drafted.token;
}
