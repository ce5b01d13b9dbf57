/** Makes a new data key for everything sealed from now on. Earlier entries stay sealed under the key that they name. */
import { z } from 'zod';
import { route, type Route } from '../route.ts';

const keyRotationReply = z
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
    replies: { 200: keyRotationReply },
    run: async (rotationInvocation, { context: httpContext }) => {
      const {
        activeKey: activeDataKey,
        previousKey: previousDataKey,
        keys: dataKeyCount,
        rotatedAt: dataKeyRotatedAt,
      } = await httpContext.system.rotateDataKey();
      rotationInvocation.describe({ template: 'rotate data key ?', literals: [String(activeDataKey)] });
      return { active_key: activeDataKey, previous_key: previousDataKey, keys: dataKeyCount, rotated_at: dataKeyRotatedAt };
    },
  }),
];
