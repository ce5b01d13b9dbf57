/** Mistakes that lose, hide or forge what was acknowledged. The crash simulation and the tamper suite must see them. */
import type { Mutant } from '../mutant.ts';

const crash = ['test/simulation/crash.test.ts'];
const regressions = ['test/simulation/regressions.test.ts'];
const tamper = ['test/simulation/tampering.test.ts'];
const bulk = ['test/log/entries/bulk-sealer.test.ts'];

const groupCommit = 'src/log/append/group-commit.ts';
const writer = 'src/log/files/log-writer.ts';
const openFile = 'src/log/files/open-log-file.ts';
const recovery = 'src/log/recovery.ts';
const logFile = 'src/log/files/log-file.ts';
const log = 'src/log/log.ts';
const placement = 'src/log/append/position-assigner.ts';
const rowHashes = ['test/log/entries/row-hashes.test.ts'];
const rowHashesSource = 'src/log/entries/row-hashes.ts';
const chain = 'src/log/files/hash-chain.ts';
const verify = 'src/log/proofs/verify.ts';

const savedLog = 'src/log/files/saved-log.ts';
const resume = ['test/log/resume.test.ts'];
const frameFeed = 'src/log/files/frame-feed.ts';
const frameOpener = 'src/log/files/frame-opener.ts';
const beside = ['test/log/open-beside.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'a frame that nobody vouched for is followed',
    file: frameFeed,
    find: 'if (!isVouchedEntry(0) && !frameIsWhole(frameBytes)) {',
    replace: 'if (isVouchedEntry(0) && !frameIsWhole(frameBytes)) {',
    killedBy: beside,
  },
  {
    name: 'a worker opens frames without looking at their checksum',
    file: frameOpener,
    find: '    if (!frameIsWhole(frameBytes)) return [];\n',
    replace: '',
    killedBy: beside,
  },
  {
    name: 'resumes on another leaf than the one that was saved',
    file: savedLog,
    find: 'if (!equalBytes(previousHash, nodes.node(0, written - 1)))',
    replace: 'if (previousHash.length === 0)',
    killedBy: resume,
  },
  {
    name: 'resumes against a signed head',
    file: savedLog,
    find: 'if (checkpoint && checkpoint.size <= written && ',
    replace: 'if (checkpoint && checkpoint.size > written && ',
    killedBy: resume,
  },
  {
    name: 'replays what the saved state stands for already',
    file: recovery,
    find: 'if (replayedEntry.leaf >= this.#replayFrom) this',
    replace: 'if (replayedEntry.leaf >= 0) this',
    killedBy: resume,
  },
  {
    name: 'acknowledges before the fsync',
    file: groupCommit,
    find: '    const writtenFrames = this.#fsyncBacklog.begin();\n',
    replace:
      "    const writtenFrames = this.#fsyncBacklog.begin();\n    for (const each of writtenFrames.acknowledgements) each.resolve('synced');\n",
    killedBy: crash,
  },
  {
    name: 'never fsyncs a group',
    file: groupCommit,
    find: 'this.#logFsync.sync(writtenFrames.bytes, isOnlyWriter).then(',
    replace: 'Promise.resolve().then(',
    killedBy: crash,
  },
  {
    name: 'trusts the page cache after an fsync has failed',
    file: recovery,
    find: '    await this.#rewriteDoubtful(file, end.offset);\n',
    replace: '',
    killedBy: regressions,
  },
  {
    name: 'calls fsync again after it failed',
    file: openFile,
    find: '    await this.#openLogFile.sync(inTurn);\n    this.#isSyncing = false;',
    replace: '    await this.#openLogFile.sync(inTurn).catch(() => this.#openLogFile.sync());\n    this.#isSyncing = false;',
    killedBy: crash,
  },
  {
    name: 'swallows a failed fsync',
    file: openFile,
    find: '    await this.#openLogFile.sync(inTurn);\n    this.#isSyncing = false;',
    replace: '    await this.#openLogFile.sync(inTurn).catch(() => undefined);\n    this.#isSyncing = false;',
    killedBy: crash,
  },
  {
    name: 'begins a file without syncing its header',
    file: writer,
    find: '    await newLogFile.sync();\n    await disk.syncDirectory(directory);\n    return newLogFile;',
    replace: '    await disk.syncDirectory(directory);\n    return newLogFile;',
    killedBy: crash,
  },
  {
    name: 'calls a file sealed that was not synced',
    file: openFile,
    find: '    await this.#openLogFile.sync();\n  }\n\n  async close',
    replace: '  }\n\n  async close',
    killedBy: crash,
  },
  {
    name: 'claims as durable what it is only writing',
    file: writer,
    find: 'durableThrough: this.#durableLeafCount }',
    replace: 'durableThrough: this.leaves }',
    killedBy: crash,
  },
  {
    name: 'takes a short write for a whole one',
    file: 'src/log/disk/disk.ts',
    find: '    writtenOffset += writtenBytes;\n',
    replace: '    writtenOffset = bytesToWrite.length;\n',
    killedBy: crash,
  },
  {
    name: 'cuts the tail at the first bad frame, whatever follows',
    file: logFile,
    find: 'if (laterClaim !== null && laterClaim > leaves) return',
    replace: 'if (laterClaim === -1) return',
    killedBy: [...crash, 'test/log/recovery.test.ts'],
  },
  {
    name: 'cuts what the signed head covers',
    file: logFile,
    find: 'if (checkpointSize > leaves) return',
    replace: 'if (checkpointSize > leaves + 1_000_000) return',
    killedBy: [...crash, ...tamper],
  },
  {
    name: 'leaves a torn tail where it is',
    file: recovery,
    find: '      await file.truncate(end.offset);\n      await file.sync();\n',
    replace: '',
    killedBy: crash,
  },
  {
    name: 'cuts a torn tail and does not sync the cut',
    file: recovery,
    find: '      await file.truncate(end.offset);\n      await file.sync();\n',
    replace: '      await file.truncate(end.offset);\n',
    killedBy: crash,
  },
  {
    name: 'reads names before their directory is synced',
    file: recovery,
    find: '  await disk.syncDirectory(logDirectory);\n  const manifest',
    replace: '  const manifest',
    killedBy: regressions,
  },
  {
    name: 'does not compare the sealed root of a file',
    file: recovery,
    find: 'if (fileLeaves !== sealedFile.leaves || replayedRoot !== sealedFile.root) {',
    replace: 'if (fileLeaves !== sealedFile.leaves) {',
    killedBy: tamper,
  },
  {
    name: 'accepts a frame that fails its checksum',
    file: logFile,
    find: '  return frameView.getBigUint64(FRAME_CHECKSUM_AT, true) === frameChecksum(frameBytesRead);',
    replace: '  return frameView.getBigUint64(FRAME_CHECKSUM_AT, true) !== 0n;',
    killedBy: [...crash, ...tamper],
  },
  {
    name: 'takes a frame from another place',
    file: logFile,
    find: 'frameHeaderReader.u64() === frameOffset;',
    replace: 'frameHeaderReader.u64() >= 0;',
    killedBy: ['test/log/entries/codec.test.ts', ...tamper, ...crash],
  },
  {
    name: 'does not follow the chain',
    file: chain,
    find: "if (!equalBytes(leafFields.previousHash, this.#previousLeafHash))\n      throw malformedError('a leaf that does not link to the one before it');",
    replace: '',
    killedBy: ['test/log/recovery.test.ts', 'test/log/log.test.ts'],
  },
  {
    name: 'lets time stand still',
    file: placement,
    find: 'laterInstant(this.#lastEntryInstant, this.#handedOutInstant) + 1n',
    replace: 'laterInstant(this.#lastEntryInstant, this.#handedOutInstant)',
    killedBy: crash,
  },
  {
    name: 'follows the clock backwards',
    file: placement,
    find: '    return laterInstant(this.#instantClock.now(), laterInstant(this.#lastEntryInstant, this.#handedOutInstant) + 1n);',
    replace: '    return this.#instantClock.now();',
    killedBy: crash,
  },
  {
    name: 'seals without waiting for what it covers',
    file: 'src/log/append/signed-heads.ts',
    find: '    await finalOutcome(sealAppend);\n    await this.#storeHead(coveringHead);',
    replace: '    await this.#storeHead(coveringHead);\n    await finalOutcome(sealAppend);',
    killedBy: crash,
  },
  {
    name: 'writes a group that is not all linked',
    file: 'src/log/append/pending-append.ts',
    find: '      if (!placed[placed.length - 1]!.linked) break;\n',
    replace: '',
    killedBy: bulk,
  },
  {
    name: 'takes appends while the disk is full',
    file: log,
    find: "if (this.#logState.at !== 'open') throw this.#logState.refusal();",
    replace: 'if (!this.#logState.isOpen) throw this.#logState.refusal();',
    killedBy: ['test/log/append/full-disk.test.ts'],
  },
  {
    name: 'believes an fsync that says that there is no room',
    file: 'src/log/disk/disk.ts',
    find: "if (syscall === 'fsync' || syscall === 'fdatasync') return null;",
    replace: '',
    killedBy: ['test/log/append/full-disk.test.ts'],
  },
  {
    name: 'takes what was written beside an fsync for fsynced by it',
    file: 'src/log/append/pending-append.ts',
    find: '    this.#nextFsync = new Unsynced();\n    return this.#runningFsync;\n',
    replace:
      '    this.#nextFsync = Object.assign(new Unsynced(), { acknowledgements: this.#runningFsync.acknowledgements });\n    return this.#runningFsync;\n',
    killedBy: ['test/log/append/group-commit.test.ts'],
  },
  {
    name: 'makes visible by an fsync what was written beside it',
    file: groupCommit,
    find: "if (this.#walSync !== 'off') this.#groupListener.onCommitted(writtenFrames.last!);\n      for (const acknowledgement",
    replace:
      "if (this.#walSync !== 'off') this.#groupListener.onCommitted(this.#fsyncBacklog.next.last ?? writtenFrames.last!);\n      for (const acknowledgement",
    killedBy: ['test/log/append/group-commit.test.ts'],
  },
  {
    name: 'leaves the closes out of the hashes of many rows',
    file: rowHashesSource,
    find: 'if (closesMax > 0) {',
    replace: 'if (closesMax > 1_000) {',
    killedBy: rowHashes,
  },
  {
    name: 'signs a head over what is linked, not over what is placed',
    file: 'src/log/append/chain-linker.ts',
    find: '  head(): TreeHead {\n    this.linkNow();\n',
    replace: '  head(): TreeHead {\n',
    killedBy: bulk,
    hangs: true,
  },
  {
    name: 'verify trusts the link',
    file: 'src/log/proofs/verify-walk.ts',
    find: 'if (expectedHash && !equalBytes(leafFields.previousHash, expectedHash))',
    replace: 'if (expectedHash && leafFields.previousHash.length !== 32)',
    killedBy: tamper,
  },
  {
    name: 'verify trusts the payload',
    file: verify,
    find: 'if (!vouchedBody && !isRedacted && !equalBytes(sha256(entryPayload), leafFields.payloadDigest)) {',
    replace: 'if (entryPayload.length === 0) {',
    killedBy: tamper,
  },
  {
    name: 'a frame is written before the keys that its rows need',
    file: log,
    find: 'keysDurable: () => keyring.subjects.durable(),',
    replace: 'keysDurable: () => null,',
    killedBy: crash,
  },
  {
    name: 'verify takes for granted what nobody vouched for',
    file: 'src/log/proofs/verify-bodies.ts',
    find: 'boolean => vouches(openReply, firstEntry + i);',
    replace: 'boolean => openReply !== null && firstEntry + i >= 0;',
    killedBy: tamper,
  },
  {
    name: 'verify ignores signed heads',
    file: 'src/log/proofs/verify-heads.ts',
    find: '      else if (!equalBytes(root, tree.root())) this.#verifyFindings.add(location, null, `commits to another root over ${size} leaves`);\n',
    replace: '',
    killedBy: tamper,
  },
];
