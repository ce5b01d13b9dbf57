/**
 * The built server with its access records, or (`silent`) with none: what they cost is what `measures/governance.ts` holds the
 * two against each other for. Both start through here, so that nothing else differs.
 */
import { serveCommand } from '../src/cli/serve.ts';
import { AccessRecordWriter } from '../src/governance/access-records/access-record-writer.ts';

if (process.argv[2] === 'silent') AccessRecordWriter.prototype.record = (): Promise<void> => Promise.resolve();
process.exit(await serveCommand({}, 'bench'));
