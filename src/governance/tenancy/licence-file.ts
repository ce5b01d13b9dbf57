/**
 * The licence file: JSON with an Ed25519 signature over the RFC 8785 form of everything else in it. A file that is not
 * what it should be stops the start with one line; an expired one does not, since reads stay open.
 *
 *   {"tier", "max_tenants", "storage_max_gb", "capabilities", "expires_unix_secs", "licensee", "signature"}
 */
import * as crypto from 'node:crypto';
import { parseKey, readSettingFile, type Settings } from '../../config.ts';
import { ConfigError } from '../../errors.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import { bytesPerGb, licenceOf, type Licence } from './licence.ts';

export type LicenceSettings = Pick<
  Settings,
  | 'SERVICE_PROFILE'
  | 'SERVICE_TENANCY_MODE'
  | 'SERVICE_MAX_TENANTS'
  | 'SERVICE_LICENSE_FILE'
  | 'SERVICE_LICENSE_PUBLIC_KEY'
  | 'SERVICE_LICENSE_PUBLIC_KEY_FILE'
  | 'SERVICE_LICENSE_GRACE_DAYS'
>;

/**
 * The licence that the settings give. Throws ConfigError for a licence that can't be trusted, or that does not fit the profile.
 */
export function readLicence(settings: LicenceSettings): Licence {
  const { SERVICE_PROFILE: profile, SERVICE_LICENSE_FILE: path, SERVICE_MAX_TENANTS: lowered } = settings;
  const sold = path === null ? licenceOf(profile) : licenceIn(readSettingFile('SERVICE_LICENSE_FILE', path), settings);
  const licence = { ...sold, tenantsMax: lowerOf(sold.tenantsMax, lowered) };
  if (settings.SERVICE_TENANCY_MODE === 'multi' && licence.tenantsMax === 1) {
    throw new ConfigError('SERVICE_TENANCY_MODE=multi needs a tenant ceiling above 1, and the licence allows one tenant');
  }
  return licence;
}

/** The lower of two ceilings, 0 being none. */
function lowerOf(licensed: number, lowered: number): number {
  if (licensed === 0 || lowered === 0) return Math.max(licensed, lowered);
  return Math.min(licensed, lowered);
}

function licenceIn(text: string, settings: LicenceSettings): Licence {
  const { SERVICE_PROFILE: profile, SERVICE_LICENSE_GRACE_DAYS: graceDays } = settings;
  if (profile === 'free') throw refusal('the free profile has limits of its own: set SERVICE_PROFILE to server or cluster');
  const { signature, ...signed } = membersOf(text);
  checkSignature(signed, signature, publicKeyOf(settings));
  const { tier, max_tenants, storage_max_gb, capabilities, expires_unix_secs, licensee, ...more } = signed;
  const [unknown] = Object.keys(more);
  if (unknown !== undefined) throw refusal(`this version does not know the member ${JSON.stringify(unknown)}`);
  if (tier !== profile) throw refusal(`its tier is ${JSON.stringify(tier)}, but SERVICE_PROFILE is ${profile}`);
  if (typeof licensee !== 'string' || licensee === '') throw refusal('it names no licensee');
  if (!Array.isArray(capabilities) || !capabilities.every((each) => typeof each === 'string')) {
    throw refusal('capabilities must be a list of strings');
  }
  const tenantsMax = wholeNumber('max_tenants', max_tenants, 1_000_000);
  const storageBytesMax = wholeNumber('storage_max_gb', storage_max_gb, 9_000_000) * bytesPerGb;
  const base = licenceOf(profile);
  return {
    tier: profile,
    storageBytesMax,
    // One tenant on server, whatever was sold. Source: specification, "Deployment profiles".
    tenantsMax: lowerOf(base.tenantsMax, tenantsMax),
    capabilities,
    ...termOf(expires_unix_secs, graceDays),
  };
}

function termOf(expires: Json | undefined, graceDays: number): Pick<Licence, 'expiresAt' | 'graceEndsAt'> {
  if (expires === null) return { expiresAt: null, graceEndsAt: null };
  const expiresAt = BigInt(wholeNumber('expires_unix_secs', expires, 9_000_000_000)) * 1_000_000_000n;
  return { expiresAt, graceEndsAt: expiresAt + BigInt(graceDays) * 86_400_000_000_000n };
}

function wholeNumber(name: string, value: Json | undefined, max: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > max) {
    throw refusal(`${name} must be a whole number from 0 to ${max}`);
  }
  return value;
}

function membersOf(text: string): Record<string, Json> {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    throw refusal('it is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refusal('it is not a JSON object');
  return { ...(value as Record<string, Json>) };
}

const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

function checkSignature(signed: Record<string, Json>, signature: Json | undefined, publicKey: Uint8Array): void {
  const key = crypto.createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: 'der', type: 'spki' });
  const bytes = typeof signature === 'string' ? Buffer.from(signature, 'base64') : Buffer.alloc(0);
  if (bytes.length !== 64 || !crypto.verify(null, Buffer.from(canonicalOf(signed)), key, bytes)) {
    throw refusal('its signature does not match the licence key');
  }
}

function canonicalOf(signed: Record<string, Json>): string {
  try {
    return canonicalJson(signed);
  } catch {
    throw refusal('it holds values that JSON cannot represent');
  }
}

function publicKeyOf(settings: LicenceSettings): Uint8Array {
  const { SERVICE_LICENSE_PUBLIC_KEY: key, SERVICE_LICENSE_PUBLIC_KEY_FILE: path } = settings;
  if (key !== null) return parseKey('SERVICE_LICENSE_PUBLIC_KEY', key);
  if (path === null)
    throw new ConfigError('SERVICE_LICENSE_FILE needs SERVICE_LICENSE_PUBLIC_KEY or SERVICE_LICENSE_PUBLIC_KEY_FILE');
  const name = 'SERVICE_LICENSE_PUBLIC_KEY_FILE';
  return parseKey(name, readSettingFile(name, path));
}

function refusal(why: string): ConfigError {
  return new ConfigError(`SERVICE_LICENSE_FILE: ${why}`);
}
