/**
 * Where the keys that open everything come from: settings and the files they name, or, on the free profile, a file
 * beside the data. Profile rules have refused what a profile does not allow before this runs.
 */
import { hkdfSync } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { Random } from './clock.ts';
import { parseKey, readSettingFile, type Settings } from './config.ts';
import { ConfigError, ServiceError } from './errors.ts';
import type { Disk } from './log/disk/disk.ts';
import { type Keyring, keyFilePath } from './log/keys/keys.ts';

export interface MasterKeys {
  /** Wraps the data keys: 32 bytes. */
  readonly kek: Uint8Array;
  /** Ed25519 seed of the log's signatures; undefined: made once and kept wrapped beside the data keys. */
  readonly signingSeed?: Uint8Array;
}

export const localKeyFile = (directory: string): string => join(directory, 'keys', 'kek');

export async function masterKeys(
  settings: Settings,
  disk: Disk,
  random: Random,
  say: (line: string) => void,
): Promise<MasterKeys> {
  const signingSeed = logSigningSeedOf(settings);
  return { kek: await keyEncryptionKey(settings, disk, random, say), ...(signingSeed ? { signingSeed } : {}) };
}

/** The keys that a data directory was made with; makes none where they are missing. */
export async function presentKeys(keySettings: Settings, disk: Disk): Promise<MasterKeys> {
  const localKekPath = localKeyFile(keySettings.SERVICE_DATA_DIR);
  const isKekConfigured = keySettings.SERVICE_KEK !== null || keySettings.SERVICE_KEK_FILE !== null;
  if (!isKekConfigured && (await disk.size(localKekPath)) === undefined)
    throw new ConfigError(`SERVICE_KEK or SERVICE_KEK_FILE: set the key-encryption key, for there is none in ${localKekPath}`);
  const noRandom: Random = {
    fill: () => {
      throw new ConfigError(`${localKekPath} is gone`);
    },
  };
  return await masterKeys(keySettings, disk, noRandom, () => undefined);
}

/** The key that seals the escrow: from the named file, else from the settings. */
export function escrowKey(keySettings: Settings, file: string | undefined): Uint8Array {
  if (file !== undefined) return parseKey('--escrow-key-file', readSettingFile('--escrow-key-file', file));
  const { SERVICE_ESCROW_KEY: configuredEscrowKey, SERVICE_ESCROW_KEY_FILE: escrowKeyFile } = keySettings;
  if (configuredEscrowKey !== null) return parseKey('SERVICE_ESCROW_KEY', configuredEscrowKey);
  if (escrowKeyFile !== null)
    return parseKey('SERVICE_ESCROW_KEY_FILE', readSettingFile('SERVICE_ESCROW_KEY_FILE', escrowKeyFile));
  throw new ConfigError(
    'SERVICE_ESCROW_KEY, SERVICE_ESCROW_KEY_FILE or --escrow-key-file: set one; openssl rand -hex 32 makes such a key',
  );
}

async function keyEncryptionKey(
  keySettings: Settings,
  disk: Disk,
  random: Random,
  say: (line: string) => void,
): Promise<Uint8Array> {
  if (keySettings.SERVICE_KEK !== null) return parseKey('SERVICE_KEK', keySettings.SERVICE_KEK);
  if (keySettings.SERVICE_KEK_FILE !== null) {
    return parseKey('SERVICE_KEK_FILE', readSettingFile('SERVICE_KEK_FILE', keySettings.SERVICE_KEK_FILE));
  }
  const localKekPath = localKeyFile(keySettings.SERVICE_DATA_DIR);
  const storedKek = await disk.readFile(localKekPath);
  if (storedKek !== undefined) {
    // A process that died before its last step may have left a name that a power cut would take back.
    await disk.syncDirectory(dirname(localKekPath));
    return parseKey(localKekPath, Buffer.from(storedKek).toString('utf8'));
  }
  const sealedKeyFile = keyFilePath(keySettings.SERVICE_DATA_DIR);
  if ((await disk.size(sealedKeyFile)) !== undefined) {
    throw new ServiceError(
      'REL_STORAGE',
      `${localKekPath} is missing, and ${sealedKeyFile} does not open without it: set SERVICE_KEK or SERVICE_KEK_FILE, or put it back`,
    );
  }
  const masterKey = random.fill(new Uint8Array(32));
  await disk.makeDirectory(dirname(localKekPath));
  await disk.replaceFile(localKekPath, Buffer.from(`${Buffer.from(masterKey).toString('hex')}\n`), 0o600);
  if (!keySettings.SERVICE_IN_MEMORY) {
    say(
      `made a key-encryption key in ${localKekPath}: it protects backups and stray copies of data files, not a disk that is taken whole;`,
    );
    say('set SERVICE_KEK or SERVICE_KEK_FILE to keep it elsewhere, and keep a copy: without it the data can not be opened');
  }
  return masterKey;
}

/** Seed of the key that signs erasure receipts. On `free` it follows from what is kept in the key file. */
export function erasureSeed(settings: Settings, { hmacKey }: Pick<Keyring, 'hmacKey'>): Uint8Array {
  const { SERVICE_ERASURE_SIGNING_KEY: configuredErasureKey } = settings;
  if (configuredErasureKey !== null) return parseKey('SERVICE_ERASURE_SIGNING_KEY', configuredErasureKey);
  return new Uint8Array(hkdfSync('sha256', hmacKey, new Uint8Array(0), 'annals erasure signing key', 32));
}

/** Server and cluster bring the erasure key from outside; the log's own key then comes from the same place. */
function logSigningSeedOf(keySettings: Settings): Uint8Array | undefined {
  if (keySettings.SERVICE_LOG_SIGNING_KEY !== null)
    return parseKey('SERVICE_LOG_SIGNING_KEY', keySettings.SERVICE_LOG_SIGNING_KEY);
  if (keySettings.SERVICE_ERASURE_SIGNING_KEY === null) return undefined;
  const erasureSigningSeed = parseKey('SERVICE_ERASURE_SIGNING_KEY', keySettings.SERVICE_ERASURE_SIGNING_KEY);
  return new Uint8Array(hkdfSync('sha256', erasureSigningSeed, new Uint8Array(0), 'annals log signing key', 32));
}
