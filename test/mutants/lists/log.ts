/** Mistakes that lose, hide or forge what was acknowledged. The crash simulation and the tamper suite must see them. */
import type { Mutant } from '../mutant.ts';

const crash = ['test/simulation/crash.test.ts'];
const regressions = ['test/simulation/regressions.test.ts'];
const tamper = ['test/simulation/tampering.test.ts'];
const bulk = ['test/log/bulk-sealer.test.ts'];

const groupCommit = 'src/log/group-commit.ts';
const writer = 'src/log/log-writer.ts';
const recovery = 'src/log/recovery.ts';
const logFile = 'src/log/log-file.ts';
const log = 'src/log/log.ts';
const bulkSealer = 'src/log/bulk-sealer.ts';
const chain = 'src/log/chain.ts';
const verify = 'src/log/verify.ts';

const savedLog = 'src/log/saved-log.ts';
const resume = ['test/log/resume.test.ts'];
const frameFeed = 'src/log/frame-feed.ts';
const frameOpener = 'src/log/frame-opener.ts';
const beside = ['test/log/open-beside.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'a frame that nobody vouched for is followed',
    file: frameFeed,
    find: 'if (!vouched(0) && !frameIsWhole(bytes)) {',
    replace: 'if (vouched(0) && !frameIsWhole(bytes)) {',
    killedBy: beside,
  },
  {
    name: 'a bad frame that was read ahead stands at the place that reading had reached',
    file: frameFeed,
    find: '      this.#scanner.offset = offset;\n',
    replace: '',
    killedBy: beside,
  },
  {
    name: 'bodies of a window overwrite those of the one before it while they are read',
    file: frameFeed,
    find: 'opener.open(frames, this.#free.pop() ?? new SharedArrayBuffer(0))',
    replace: 'opener.open(frames, this.#free[0] ?? new SharedArrayBuffer(0))',
    killedBy: beside,
  },
  {
    name: 'a worker opens frames without looking at their checksum',
    file: frameOpener,
    find: '    if (!frameIsWhole(bytes)) return [];\n',
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
    name: 'resumes beside a manifest that lists other files',
    file: savedLog,
    find: 'if (link !== linkBefore(manifest, lastFrame.file))',
    replace: 'if (link.length !== 64)',
    killedBy: resume,
  },
  {
    name: 'resumes without looking for the files that it does not read',
    file: savedLog,
    find: '  await checkFiles(log, lastFrame);\n',
    replace: '',
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
    name: 'resumes from a state that is ahead of its log',
    file: recovery,
    find: 'if (this.#chain.leaves < this.#replayFrom)',
    replace: 'if (this.#chain.leaves < 0)',
    killedBy: resume,
  },
  {
    name: 'resumes where the log went another way',
    file: recovery,
    find: '          else this.#checkSavedLeaf();\n',
    replace: '',
    killedBy: resume,
  },
  {
    name: 'replays what the saved state stands for already',
    file: recovery,
    find: 'if (entry.leaf >= this.#replayFrom) this',
    replace: 'if (entry.leaf >= 0) this',
    killedBy: resume,
  },
  {
    name: 'refuses a saved state after entries were replayed',
    file: recovery,
    find: 'if (replaying || !(cause instanceof ServiceError)) throw cause;',
    replace: 'if (!(cause instanceof ServiceError)) throw cause;',
    killedBy: resume,
  },
  {
    name: 'saves a seal that is not written yet',
    file: log,
    find: 'const sealWritten = this.#sealedLeaves <= written;',
    replace: 'const sealWritten = this.#sealedLeaves >= 0;',
    killedBy: resume,
  },
  {
    name: 'acknowledges before the fsync',
    file: groupCommit,
    find: '      await this.#writer.sync();\n',
    replace: "      for (const { acknowledge } of group) acknowledge('synced');\n      await this.#writer.sync();\n",
    killedBy: crash,
  },
  {
    name: 'never fsyncs a group',
    file: groupCommit,
    find: '      await this.#writer.sync();\n',
    replace: '',
    killedBy: crash,
  },
  {
    name: 'acknowledges a group of one with the next one',
    file: groupCommit,
    find: "if (group.some(({ needs }) => needs === 'fsync')) {\n      await",
    replace: "if (group.some(({ needs }) => needs === 'fsync')) {\n      if (this.#queue.length === 0) await",
    killedBy: crash,
  },
  {
    name: 'forgets who waits when the log has failed already',
    file: groupCommit,
    find: '      else this.fail(undefined);\n',
    replace: '',
    killedBy: regressions,
  },
  {
    name: 'goes on as if nothing had failed',
    file: log,
    find: "    this.#state = { at: 'failed', reason: cause instanceof Error ? cause.message : String(cause) };\n",
    replace: '',
    killedBy: ['test/log/log.test.ts', ...crash],
  },
  {
    name: 'leaves unsealed what was written during a seal',
    file: log,
    find: "      if (this.#state.at === 'open' && this.#leaves > this.#sealedLeaves) this.#sealWhenIdle();\n",
    replace: '',
    killedBy: regressions,
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
    file: writer,
    find: '    await this.#file.sync();\n    this.#durableLeaves = written;',
    replace: '    await this.#file.sync().catch(() => this.#file.sync());\n    this.#durableLeaves = written;',
    killedBy: crash,
  },
  {
    name: 'swallows a failed fsync',
    file: writer,
    find: '    await this.#file.sync();\n    this.#durableLeaves = written;',
    replace: '    await this.#file.sync().catch(() => undefined);\n    this.#durableLeaves = written;',
    killedBy: crash,
  },
  {
    name: 'begins a file without syncing its header',
    file: writer,
    find: '  await file.sync();\n  await disk.syncDirectory(directory);\n  return file;',
    replace: '  await disk.syncDirectory(directory);\n  return file;',
    killedBy: crash,
  },
  {
    name: 'calls a file sealed that was not synced',
    file: writer,
    find: '    await this.#file.sync();\n    this.#durableLeaves = this.leaves;\n',
    replace: '    this.#durableLeaves = this.leaves;\n',
    killedBy: crash,
  },
  {
    name: 'claims as durable what it is only writing',
    file: writer,
    find: 'durableThrough: this.#durableLeaves }',
    replace: 'durableThrough: this.leaves }',
    killedBy: crash,
  },
  {
    name: 'takes a short write for a whole one',
    file: logFile,
    find: '    at += written;\n',
    replace: '    at = source.length;\n',
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
    name: 'relies on a key file whose name is not durable',
    file: 'src/log/keys.ts',
    find: 'if (stored) await disk.syncDirectory(`${directory}/keys`);',
    replace: '',
    killedBy: regressions,
  },
  {
    name: 'does not compare the sealed root of a file',
    file: recovery,
    find: 'if (leaves !== record.leaves || root !== record.root) {',
    replace: 'if (leaves !== record.leaves) {',
    killedBy: tamper,
  },
  {
    name: 'accepts a frame that fails its checksum',
    file: logFile,
    find: '  return view.getBigUint64(CHECKSUM_AT, true) === checksum(frame);',
    replace: '  return view.getBigUint64(CHECKSUM_AT, true) !== 0n;',
    killedBy: [...crash, ...tamper],
  },
  {
    name: 'takes a frame from another place',
    file: logFile,
    find: 'source.u64() === offset;',
    replace: 'source.u64() >= 0;',
    killedBy: ['test/log/codec.test.ts', ...tamper, ...crash],
  },
  {
    name: 'does not follow the chain',
    file: chain,
    find: "    if (!equalBytes(facts.previousHash, this.#previousHash)) throw malformed('a leaf that does not link to the one before it');\n",
    replace: '',
    killedBy: ['test/log/recovery.test.ts', 'test/log/log.test.ts'],
  },
  {
    name: 'lets time stand still',
    file: log,
    find: 'max(this.#lastInstant, this.#handedOut) + 1n',
    replace: 'max(this.#lastInstant, this.#handedOut)',
    killedBy: crash,
  },
  {
    name: 'follows the clock backwards',
    file: log,
    find: '    return max(this.#options.clock.now(), max(this.#lastInstant, this.#handedOut) + 1n);',
    replace: '    return this.#options.clock.now();',
    killedBy: crash,
  },
  {
    name: 'seals without waiting for what it covers',
    file: log,
    find: '    await acknowledged;\n    await this.#store(covering);',
    replace: '    await this.#store(covering);\n    await acknowledged;',
    killedBy: crash,
  },
  {
    name: 'closes without a seal',
    file: log,
    find: '    if (!this.#hasFailed()) await this.seal().catch(() => undefined);\n',
    replace: '',
    killedBy: [...crash, ...tamper],
  },
  {
    name: 'links an entry before the large one that it follows',
    file: log,
    find: '    for (; count < unlinked.length && unlinked[count]!.ready; count++) this.#linkOne(unlinked[count]!);',
    replace: '    for (; count < unlinked.length; count++) this.#linkOne(unlinked[count]!);',
    killedBy: bulk,
  },
  {
    name: 'writes a group that is not all linked',
    file: groupCommit,
    find: '      if (!entries[entries.length - 1]!.linked) break;\n',
    replace: '',
    killedBy: bulk,
  },
  {
    name: 'goes on when a worker is gone',
    file: bulkSealer,
    find: '        if (!this.#ended) this.#failed(cause);\n',
    replace: '        void cause;\n',
    killedBy: bulk,
  },
  {
    name: 'gives a slot away that a worker still writes to',
    file: bulkSealer,
    find: '    if (!busy) this.#keep(',
    replace: '    this.#keep(',
    killedBy: bulk,
  },
  {
    name: 'seals what a thread still writes into the slot of that thread',
    file: bulkSealer,
    find: '    this.sealed ??= {',
    replace: '    this.sealed = {',
    killedBy: bulk,
  },
  {
    name: 'signs a head over what is linked, not over what is placed',
    file: log,
    find: '  head(): TreeHead {\n    this.#linkNow();\n',
    replace: '  head(): TreeHead {\n',
    killedBy: bulk,
  },
  {
    name: 'hashes the rows of a slice under what another body shares',
    file: 'src/log/row-leaf.ts',
    find: '    hasher.restart(path);\n    for (let row = first; row < Math.min',
    replace: '    for (let row = first; row < Math.min',
    killedBy: bulk,
  },
  {
    name: 'verify trusts the link',
    file: verify,
    find: 'if (linked && !equalBytes(facts.previousHash, linked))',
    replace: 'if (linked && facts.previousHash.length !== 32)',
    killedBy: tamper,
  },
  {
    name: 'verify trusts the payload',
    file: verify,
    find: 'if (!vouched && !redacted && !equalBytes(sha256(payload), facts.payloadDigest)) {',
    replace: 'if (payload.length === 0) {',
    killedBy: tamper,
  },
  {
    name: 'verify takes for granted what nobody vouched for',
    file: 'src/log/verify-bodies.ts',
    find: "vouched: (i) => reply !== 'under way' && vouches(reply, first + i)",
    replace: "vouched: (i) => reply !== 'under way' && first + i >= 0",
    killedBy: tamper,
  },
  {
    name: 'verify ignores signed heads',
    file: verify,
    find: '      else if (!equalBytes(root, this.#tree.root())) this.#find(place, null, `commits to another root over ${size} leaves`);\n',
    replace: '',
    killedBy: tamper,
  },
];
