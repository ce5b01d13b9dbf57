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

export async function mintTokenCommand(mintOptions: MintOptions, version: string): Promise<number> {
  const expiresInSecs = mintOptions.expiresIn === undefined ? undefined : Number(mintOptions.expiresIn);
  if (expiresInSecs !== undefined && !Number.isSafeInteger(expiresInSecs))
    throw new ConfigError('--expires-in: expected whole seconds');
  if (mintOptions.url !== undefined) {
    const adminCredential = process.env['SERVICE_ADMIN_TOKEN'];
    if (!adminCredential) throw new ConfigError('--url needs the admin credential in SERVICE_ADMIN_TOKEN');
    const mintBody = {
      tenant_id: mintOptions.tenant,
      organization: mintOptions.organization,
      principal: mintOptions.principal,
      roles: mintOptions.role,
      purposes: mintOptions.tokenPurpose,
      expires_in_secs: expiresInSecs,
    };
    const adminServer = { url: withoutTrailing(mintOptions.url, '/'), headers: { authorization: `Bearer ${adminCredential}` } };
    const mintedToken = (await request(adminServer, 'POST', '/admin/tokens', ['token'], JSON.stringify(mintBody))) as {
      token: string;
    };
    process.stdout.write(`${mintedToken.token}\n`);
    return exitCode.ok;
  }
  const newToken = await withService(mintOptions, version, (service) =>
    mintToken(service, {
      tenant: mintOptions.tenant,
      organization: mintOptions.organization,
      principal: mintOptions.principal,
      roles: mintOptions.role,
      purposes: mintOptions.tokenPurpose,
      expiresInSecs,
    }),
  );
  process.stdout.write(`${newToken}\n`);
  return exitCode.ok;
}

/** Mints through the gate like every write; the secret is in the return value only. */
export async function mintToken(openService: Service, tokenRequest: TokenRequest): Promise<string> {
  const tokenDraft = draftToken(tokenRequest, openService.ids, systemRandom, systemClock.now());
  const mintCaller = operator(null);
  await openService.gate.invoke(
    mintCaller,
    { action: 'administer', purpose: null, correlationId: openService.ids.next() },
    (invocation) => invocation.submit({ kind: 'mint-token', token: tokenDraft.record }, { sync: true }),
  );
  return tokenDraft.token;
}
