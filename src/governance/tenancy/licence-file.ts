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
  const { SERVICE_PROFILE: profile, SERVICE_LICENSE_FILE: licencePath, SERVICE_MAX_TENANTS: loweredTenantsMax } = settings;
  const soldLicence =
    licencePath === null ? licenceOf(profile) : licenceIn(readSettingFile('SERVICE_LICENSE_FILE', licencePath), settings);
  const licence = { ...soldLicence, tenantsMax: lowerTenantsMax(soldLicence.tenantsMax, loweredTenantsMax) };
  if (settings.SERVICE_TENANCY_MODE === 'multi' && licence.tenantsMax === 1) {
    throw new ConfigError('SERVICE_TENANCY_MODE=multi needs a tenant ceiling above 1, and the licence allows one tenant');
  }
  return licence;
}

/** The lower of two ceilings, 0 being none. */
function lowerTenantsMax(licensedMax: number, loweredMax: number): number {
  if (licensedMax === 0 || loweredMax === 0) return Math.max(licensedMax, loweredMax);
  return Math.min(licensedMax, loweredMax);
}

function licenceIn(licenceText: string, settings: LicenceSettings): Licence {
  const { SERVICE_PROFILE: profile, SERVICE_LICENSE_GRACE_DAYS: graceDays } = settings;
  if (profile === 'free')
    throw licenceRefusal('the free profile has limits of its own: set SERVICE_PROFILE to server or cluster');
  const { signature, ...signedMembers } = licenceMembers(licenceText);
  checkSignature(signedMembers, signature, publicKeyOf(settings));
  const { tier, max_tenants, storage_max_gb, capabilities, expires_unix_secs, licensee, ...unknownMembers } = signedMembers;
  const [unknownMember] = Object.keys(unknownMembers);
  if (unknownMember !== undefined) throw licenceRefusal(`this version does not know the member ${JSON.stringify(unknownMember)}`);
  if (tier !== profile) throw licenceRefusal(`its tier is ${JSON.stringify(tier)}, but SERVICE_PROFILE is ${profile}`);
  if (typeof licensee !== 'string' || licensee === '') throw licenceRefusal('it names no licensee');
  if (!Array.isArray(capabilities) || !capabilities.every((each) => typeof each === 'string')) {
    throw licenceRefusal('capabilities must be a list of strings');
  }
  const tenantsMax = wholeLicenceNumber('max_tenants', max_tenants, 1_000_000);
  const storageBytesMax = wholeLicenceNumber('storage_max_gb', storage_max_gb, 9_000_000) * bytesPerGb;
  const profileLicence = licenceOf(profile);
  return {
    tier: profile,
    storageBytesMax,
    // One tenant on server, whatever was sold. Source: specification, "Deployment profiles".
    tenantsMax: lowerTenantsMax(profileLicence.tenantsMax, tenantsMax),
    capabilities,
    ...licenceTermOf(expires_unix_secs, graceDays),
  };
}

function licenceTermOf(expires: Json | undefined, graceDays: number): Pick<Licence, 'expiresAt' | 'graceEndsAt'> {
  if (expires === null) return { expiresAt: null, graceEndsAt: null };
  const expiresAt = BigInt(wholeLicenceNumber('expires_unix_secs', expires, 9_000_000_000)) * 1_000_000_000n;
  return { expiresAt, graceEndsAt: expiresAt + BigInt(graceDays) * 86_400_000_000_000n };
}

function wholeLicenceNumber(name: string, memberValue: Json | undefined, max: number): number {
  if (typeof memberValue !== 'number' || !Number.isSafeInteger(memberValue) || memberValue < 0 || memberValue > max) {
    throw licenceRefusal(`${name} must be a whole number from 0 to ${max}`);
  }
  return memberValue;
}

function licenceMembers(licenceText: string): Record<string, Json> {
  let licenceJson: Json;
  try {
    licenceJson = JSON.parse(licenceText) as Json;
  } catch {
    throw licenceRefusal('it is not JSON');
  }
  if (typeof licenceJson !== 'object' || licenceJson === null || Array.isArray(licenceJson))
    throw licenceRefusal('it is not a JSON object');
  return { ...(licenceJson as Record<string, Json>) };
}

const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

function checkSignature(signedMembers: Record<string, Json>, signature: Json | undefined, publicKey: Uint8Array): void {
  const licenceKey = crypto.createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: 'der', type: 'spki' });
  const signatureBytes = typeof signature === 'string' ? Buffer.from(signature, 'base64') : Buffer.alloc(0);
  if (
    signatureBytes.length !== 64 ||
    !crypto.verify(null, Buffer.from(canonicalLicence(signedMembers)), licenceKey, signatureBytes)
  ) {
    throw licenceRefusal('its signature does not match the licence key');
  }
}

function canonicalLicence(signed: Record<string, Json>): string {
  try {
    return canonicalJson(signed);
  } catch {
    throw licenceRefusal('it holds values that JSON cannot represent');
  }
}

function publicKeyOf(settings: LicenceSettings): Uint8Array {
  const { SERVICE_LICENSE_PUBLIC_KEY: publicKeyText, SERVICE_LICENSE_PUBLIC_KEY_FILE: publicKeyPath } = settings;
  if (publicKeyText !== null) return parseKey('SERVICE_LICENSE_PUBLIC_KEY', publicKeyText);
  if (publicKeyPath === null)
    throw new ConfigError('SERVICE_LICENSE_FILE needs SERVICE_LICENSE_PUBLIC_KEY or SERVICE_LICENSE_PUBLIC_KEY_FILE');
  const publicKeySetting = 'SERVICE_LICENSE_PUBLIC_KEY_FILE';
  return parseKey(publicKeySetting, readSettingFile(publicKeySetting, publicKeyPath));
}

function licenceRefusal(why: string): ConfigError {
  return new ConfigError(`SERVICE_LICENSE_FILE: ${why}`);
}
