/** Mistakes that would make a restart, a small memory or a hard delete give other answers than the log, or believe a wrong file. */
import type { Mutant } from '../mutant.ts';

const file = ['test/log/derived-file.test.ts'];
const contract = ['test/projections/contract.test.ts'];
const restart = ['test/projections/restart.test.ts'];
const store = ['test/projections/column-store.test.ts'];
const versions = ['test/projections/versions.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'derived: a piece is not bound to its place',
    file: 'src/log/derived-file.ts',
    find: 'this.#nonce.writeUInt32LE(number, 0);\n    this.#binding.writeUInt32LE(number, 32);',
    replace: '',
    killedBy: file,
  },
  {
    name: 'derived: a file of another log is taken',
    file: 'src/log/derived-file.ts',
    find: 'if (logId !== null && header.logId !== logId)',
    replace: 'if (logId === header.name)',
    killedBy: file,
  },
  {
    name: 'derived: a file under another name is taken',
    file: 'src/log/derived-file.ts',
    find: "if (header.name !== name) return refuse('it was written under another name');",
    replace: '',
    killedBy: [...file, ...restart],
  },
  {
    name: 'derived: a broken seal is passed over',
    file: 'src/log/derived-file.ts',
    find: '      decipher.final();\n      return bytes;',
    replace: '      return bytes;',
    killedBy: file,
  },
  {
    name: 'derived: bytes go to the file as they are',
    file: 'src/log/derived-file.ts',
    find: 'return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);',
    replace: 'cipher.update(bytes);\n    return Buffer.concat([bytes, cipher.final(), cipher.getAuthTag()]);',
    killedBy: file,
  },
  {
    name: 'derived: a checkpoint of other formats is taken',
    file: 'src/projections/checkpoint.ts',
    find: 'if (formats.get(name) !== projector.projection(name).formatVersion) {',
    replace: 'if (!formats.has(name)) {',
    killedBy: contract,
  },
  {
    name: 'derived: a refused checkpoint leaves half of its state',
    file: 'src/projections/checkpoint.ts',
    find: '    } catch (error) {\n      projector.reset();',
    replace: '    } catch (error) {',
    killedBy: store,
  },
  {
    name: 'derived: closings go on changing while a checkpoint of them is written',
    file: 'src/projections/rows/segment.ts',
    find: "assert(this.isOpen(row), 'a version is closed once');\n    if (this.#captured) this.#leaveCopy(this.#captured);",
    replace: "assert(this.isOpen(row), 'a version is closed once');",
    killedBy: contract,
  },
  {
    name: 'derived: chains go on changing while a checkpoint of them is written',
    file: 'src/projections/rows/segment.ts',
    find: '    if (this.#captured) this.#leaveCopy(this.#captured);\n    this.#codes.nextLive.set',
    replace: '    this.#codes.nextLive.set',
    killedBy: store,
  },
  {
    name: 'derived: a column leaves memory though its file is behind',
    file: 'src/projections/rows/store/column-store.ts',
    find: 'if (!each.cells.isAtRest) {',
    replace: 'if (!each.cells.isAtRest && each.bytes < 0) {',
    killedBy: store,
  },
  {
    name: 'derived: a removed row stays in the file of its segment',
    file: 'src/projections/rows/segment-columns.ts',
    find: '    this.#version++;\n',
    replace: '',
    killedBy: store,
  },
  {
    name: 'derived: a hard delete waits for the next checkpoint',
    file: 'src/projections/checkpoint-keeper.ts',
    find: 'if (this.#removal || this.#closing.signal.aborted) return;',
    replace: 'if (!this.#removal) return;',
    killedBy: restart,
  },
  {
    name: 'derived: what was widened since the file was written is read as it was',
    file: 'src/projections/rows/segment-columns.ts',
    find: 'for (const wider of this.#widened.get(name) ?? []) column.widen(wider);',
    replace: '',
    killedBy: store,
  },
  {
    name: 'derived: superseded versions are indexed after a restart',
    file: 'src/projections/rows/table.ts',
    find: 'if (superseded && (superseded[row >>> 5]! & (1 << (row & 31))) !== 0) continue;',
    replace: '',
    killedBy: store,
  },
  {
    name: 'derived: removed keys are indexed after a restart',
    file: 'src/projections/rows/table.ts',
    find: 'if (!segment.isRemoved(row)) keys.add(',
    replace: 'if (row >= 0) keys.add(',
    killedBy: [...versions, ...contract],
  },
  {
    name: 'derived: files that the checkpoint rests on are removed',
    file: 'src/projections/rows/store/column-store.ts',
    find: 'if (born >= generation || needed.has(name) || used.has(name)) continue;',
    replace: 'if (born >= generation) continue;',
    killedBy: restart,
  },
  {
    name: 'derived: a full disk fails the store again and again',
    file: 'src/projections/checkpoint-keeper.ts',
    find: '      this.#said = true;\n',
    replace: '',
    killedBy: restart,
  },
  {
    name: 'derived: the whole log is not read where that was asked for',
    file: 'src/service.ts',
    find: 'settings.SERVICE_VERIFY_ON_START ? null : await findCheckpoint(reader, say)',
    replace: 'await findCheckpoint(reader, say)',
    killedBy: restart,
  },
  {
    name: 'derived: a file that can not be read is believed at the next start',
    file: 'src/projections/rows/store/column-store.ts',
    find: '    this.#options.damaged?.();\n',
    replace: '',
    killedBy: restart,
  },
  {
    name: 'derived: what is in memory is never weighed',
    file: 'src/projections/rows/store/column-store.ts',
    find: 'if (this.#resident <= limit) return;',
    replace: 'if (this.#resident <= 1e9) return;',
    killedBy: store,
  },
  {
    name: 'a derived file that the disk can not give back ends the start',
    file: 'src/log/derived-file.ts',
    find: 'if (error instanceof DerivedFileError || !/^E[A-Z0-9]+$/.test(code)) throw error;',
    replace: 'if (code !== "none") throw error;',
    killedBy: ['test/simulation/stored-crash.test.ts'],
  },
  {
    name: 'something lies at address 0, which kernels take for none',
    file: 'src/log/column-memory.ts',
    find: 'const free = [{ at: ALIGNMENT, size: this.#memoryBytes }];',
    replace: 'const free = [{ at: 0, size: this.#memoryBytes }];',
    killedBy: ['test/log/column-memory.test.ts'],
  },
  {
    name: 'zeros where frames were are the end of a file',
    file: 'src/log/log-reader.ts',
    find: 'if (offset < length) throw',
    replace: 'if (offset > length) throw',
    killedBy: ['test/simulation/crash.test.ts'],
  },
];
