/** How large an object may be. */
import { ServiceError } from '../../errors.ts';

export const objectBytesMax = 5 * 2 ** 30;

export const tooLarge = (): ServiceError => new ServiceError('REL_TOO_LARGE', `an object has at most ${objectBytesMax} bytes`);
