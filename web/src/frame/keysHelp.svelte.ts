/** Whether the list of keys is open. */
class KeysHelp {
  isOpen = $state(false);
}

export const keysHelp = new KeysHelp();
