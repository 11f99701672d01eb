/** What an alert says, as a sentence begins. */
export function messageOf({ message }: { message: string }): string {
  return message.startsWith('cpu ') ? `CPU${message.slice(3)}` : message.charAt(0).toUpperCase() + message.slice(1);
}
