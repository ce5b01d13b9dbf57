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

const statementLeafPrefix = new Uint8Array(1);
const statementEncoder = new TextEncoder();

/** Null for kinds that state nothing, and for rows, whose root is over the rows. */
export function statementOf(statedBody: EntryBody): string | null {
  if (isOpen(statedBody)) return null;
  switch (statedBody.kind) {
    case 'branch':
      return statementLines(
        'annals/branch/v1',
        statedBody.change,
        JSON.stringify(statedBody.name),
        JSON.stringify(statedBody.source),
        statedBody.shares,
      );
    case 'exhibit':
      return statementLines('annals/exhibit/v1', JSON.stringify(statedBody.exhibit), String(statedBody.link), statedBody.seal);
    case 'erasure':
      return statementLines(
        'annals/erasure/v1',
        statedBody.change,
        JSON.stringify(statedBody.id),
        sha256Hex(statementEncoder.encode(statedBody.statement)),
      );
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

export function statementRoot(statedBody: EntryBody): Uint8Array {
  const statement = statementOf(statedBody);
  return statement === null ? noStatementRoot : sha256(statementLeafPrefix, statementEncoder.encode(statement));
}

function statementLines(...statementParts: readonly string[]): string {
  return statementParts.map((statementPart) => `${statementPart}\n`).join('');
}
