/**
 * What the primary-key index of a store takes, for `measures/memory.ts`. Argument: data directory. Prints one line of JSON:
 * {keys, bytes}.
 */
import { openDurable } from './durable-store.ts';

const service = await openDurable(process.argv[2]!);
const index = service.store.projections.rows.table(null, 'Version')!.index;
console.log(JSON.stringify({ keys: index.size, bytes: index.bytes }));
await service.close();
process.exit(0);
