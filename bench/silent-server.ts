/** The built server, but for its access records: none is made. What they cost is what `measures/governance.ts` holds it against. */
import { fileURLToPath, pathToFileURL } from 'node:url';

const built = (path: string): string => pathToFileURL(fileURLToPath(new URL(`../dist/${path}`, import.meta.url))).href;

const { AuditTrail } = (await import(built('governance/audit-trail.js'))) as typeof import('../src/governance/audit-trail.ts');
const { serveCommand } = (await import(built('cli/serve.js'))) as typeof import('../src/cli/serve.ts');
AuditTrail.prototype.record = (): Promise<void> => Promise.resolve();
process.exit(await serveCommand({}, 'bench'));
