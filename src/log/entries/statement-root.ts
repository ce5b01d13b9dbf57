/**
 * The statement of an entry without rows: an auditor gets it in the clear beside the leaf. The leaf carries its hash, so a proof
 * of the leaf proves the statement while the sealed body stays shut.
 *
 *   root = SHA-256(0x00 | statement), the statement being UTF-8 lines that each end in a line feed
 *   branch   "annals/branch/v1", change, name as JSON, source as JSON, shares
 *   exhibit  "annals/exhibit/v1", exhibit as JSON, link, seal
 *   erasure  "annals/erasure/v1", change, id as JSON, lower-case hex SHA-256 of what its receipt says
 *
 * Changing this needs a new version in the first line and a fixture.
 */
import { type EntryBody, isOpen } from './entry.ts';
import { sha256, sha256Hex } from '../bytes/sha256.ts';

/** Root of an entry that states nothing: the hash of no bytes. */
export const noStatementRoot: Uint8Array = sha256(new Uint8Array(0));

const prefix = new Uint8Array(1);
const encoder = new TextEncoder();

/** Null for kinds that state nothing, and for rows, whose root is over the rows. */
export function statementOf(body: EntryBody): string | null {
  if (isOpen(body)) return null;
  switch (body.kind) {
    case 'branch':
      return lines('annals/branch/v1', body.change, JSON.stringify(body.name), JSON.stringify(body.source), body.shares);
    case 'exhibit':
      return lines('annals/exhibit/v1', JSON.stringify(body.exhibit), String(body.link), body.seal);
    case 'erasure':
      return lines('annals/erasure/v1', body.change, JSON.stringify(body.id), sha256Hex(encoder.encode(body.statement)));
    case 'genesis':
    case 'seal':
    case 'rows':
    case 'parts':
    case 'removal':
    case 'type':
    case 'token':
    case 'access':
    case 'view':
    case 'receipt':
    case 'policy':
    case 'tenant':
    case 'agreement':
    case 'retention':
    case 'redaction':
      return null;
  }
}

export function statementRoot(body: EntryBody): Uint8Array {
  const statement = statementOf(body);
  return statement === null ? noStatementRoot : sha256(prefix, encoder.encode(statement));
}

function lines(...parts: readonly string[]): string {
  return parts.map((part) => `${part}\n`).join('');
}
