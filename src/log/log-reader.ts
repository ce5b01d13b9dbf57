/** Reading back while the log is open: what had been written when the call was made, verified frame by frame. */
import { ServiceError } from '../errors.ts';
import type { Disk } from './disk.ts';
import { decodeEntry, decodeLeaf } from './entry-codec.ts';
import type { CommittedEntry } from './entry.ts';
import type { Keyring } from './keys.ts';
import { FrameScanner, frameEntries } from './log-file.ts';
import { type LogFileRecord, logFileName } from './manifest.ts';

export interface ReadRange {
  readonly disk: Disk;
  readonly keyring: Keyring;
  readonly logDirectory: string;
  readonly files: readonly LogFileRecord[];
  /** Bytes of the last file that hold frames. */
  readonly openLength: number;
  readonly fromLeaf: number;
}

export async function* readEntries(range: ReadRange): AsyncGenerator<CommittedEntry> {
  for (const record of range.files) {
    const end = record.state === 'sealed' ? record.firstLeaf + record.leaves : Number.POSITIVE_INFINITY;
    if (end > range.fromLeaf) yield* readFileEntries(range, record);
  }
}

async function* readFileEntries(range: ReadRange, record: LogFileRecord): AsyncGenerator<CommittedEntry> {
  const path = `${range.logDirectory}/${logFileName(record.number)}`;
  const file = await range.disk.open(path, 'read');
  try {
    const scanner = new FrameScanner(file, record.number, record.state === 'sealed' ? record.length : range.openLength);
    for (;;) {
      const offset = scanner.offset;
      const scanned = await scanner.next();
      if (scanned.found === 'end') return;
      if (scanned.found === 'bad') throw new ServiceError('REL_STORAGE', `${path} offset ${offset}: ${scanned.reason}`);
      const { header } = scanned;
      if (header.firstLeaf + header.entries <= range.fromLeaf) continue;
      for (const stored of frameEntries(scanned.bytes, header)) {
        const facts = decodeLeaf(stored.leaf);
        if (facts.leaf < range.fromLeaf) continue;
        yield decodeEntry(facts, stored.payload, range.keyring, { redacted: stored.redacted, rows: false });
      }
    }
  } finally {
    await file.close();
  }
}
