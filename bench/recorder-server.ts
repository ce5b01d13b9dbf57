/**
 * The built server with its access records, or (`silent`) with none: what they cost is what `measures/governance.ts` holds the
 * two against each other for. Both start through here, so that nothing else differs.
 */
import { fileURLToPath, pathToFileURL } from 'node:url';

const built = (path: string): string => pathToFileURL(fileURLToPath(new URL(`../dist/${path}`, import.meta.url))).href;

const { AuditTrail } = (await import(built('governance/audit-trail.js'))) as typeof import('../src/governance/audit-trail.ts');
const { serveCommand } = (await import(built('cli/serve.js'))) as typeof import('../src/cli/serve.ts');
if (process.argv[2] === 'silent') AuditTrail.prototype.record = (): Promise<void> => Promise.resolve();
process.exit(await serveCommand({}, 'bench'));
