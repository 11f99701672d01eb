import * as m from '#messages/signIn';
import type { Ended } from '../../session/ended';

export const endWords: Record<Ended, () => string> = {
  'by-hand': m.endByHand,
  untold: m.endUntold,
  expired: m.endExpired,
  elsewhere: m.endElsewhere,
  reused: m.endReused,
};
