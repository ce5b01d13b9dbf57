/** Makes a new data key for everything sealed from now on. Earlier entries stay sealed under the key that they name. */
import { z } from 'zod';
import { route, type Route } from '../route.ts';

const reply = z
  .object({
    active_key: z.int().describe('number of the data key that is in use from now on'),
    previous_key: z.int(),
    keys: z.int().describe('data keys that are there, each for what was sealed under it'),
    rotated_at: z.string(),
  })
  .meta({ id: 'KeyRotation' });

/** POST /admin/rotate-dek. */
export const rotateKeyRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/rotate-dek',
    access: 'admin',
    action: 'administer',
    summary: 'Put a new data key into use',
    tags: ['system'],
    body: z.strictObject({}).nullish(),
    replies: { 200: reply },
    run: async (invocation, { context }) => {
      const { activeKey, previousKey, keys, rotatedAt } = await context.system.rotateDataKey();
      invocation.describe({ template: 'rotate data key ?', literals: [String(activeKey)] });
      return { active_key: activeKey, previous_key: previousKey, keys, rotated_at: rotatedAt };
    },
  }),
];
