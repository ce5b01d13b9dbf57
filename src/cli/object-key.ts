/** `annals object-key`: what stands for the shared secret where anybody may read along, as in a signed URL of the object door. */
import { loadSettings } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { keyIdOf } from '../governance/authentication/sigv4.ts';
import { exitCode } from './exit.ts';

export function objectKeyCommand({ config }: { readonly config?: string }): Promise<number> {
  const { SERVICE_BEARER_TOKEN: secret } = loadSettings({ env: process.env, configPath: config });
  if (secret === null) throw new ConfigError('SERVICE_BEARER_TOKEN is not set: the key id is made from it');
  process.stdout.write(`${keyIdOf(secret)}\n`);
  return Promise.resolve(exitCode.ok);
}
