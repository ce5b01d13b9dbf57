/** `annals object-key`: the keys by which a client of the object door signs, without a server. */
import { loadSettings } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { keyPairOf } from '../governance/authentication/access-keys.ts';
import { keyIdOf } from '../governance/authentication/sigv4.ts';
import { exitCode } from './exit-codes.ts';

export interface ObjectKeyOptions {
  readonly config?: string;
  readonly token?: string;
}

export async function objectKeyCommand({
  config: configPath,
  token: registryToken = process.env['ANNALS_TOKEN'],
}: ObjectKeyOptions): Promise<number> {
  process.stdout.write(registryToken ? objectKeyPairText(registryToken) : `${sharedObjectKeyId(configPath)}\n`);
  return exitCode.ok;
}

/** As shells and `~/.aws` take it. */
function objectKeyPairText(registryToken: string): string {
  const objectKeyPair = keyPairOf(registryToken);
  if (objectKeyPair === null) throw new ConfigError('--token: this is not a registry token');
  return `AWS_ACCESS_KEY_ID=${objectKeyPair.accessKey}\nAWS_SECRET_ACCESS_KEY=${objectKeyPair.secretKey}\n`;
}

function sharedObjectKeyId(configPath: string | undefined): string {
  const { SERVICE_BEARER_TOKEN: bearerSecret } = loadSettings({ env: process.env, configPath: configPath });
  if (bearerSecret === null) throw new ConfigError('SERVICE_BEARER_TOKEN is not set: the key id is made from it');
  return keyIdOf(bearerSecret);
}
