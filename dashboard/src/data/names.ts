/** Names beside each other: what all of them share is left out. */

/** Each name without the words that all have, and within `most` letters; the whole name where nothing else is left. */
export function shortNames(names: readonly string[], most = 16): string[] {
  const words = names.map((name) => name.split(/ +/).filter((word) => word !== ""));
  const shared =
    names.length > 1 ? (words[0] ?? []).filter((word) => words.every((other) => other.includes(word))) : [];
  return words.map((own, i) => {
    const rest = own.filter((word) => !shared.includes(word));
    // A number without the word before it ("0.1" of "clip 0.1") says nothing.
    const told = own.filter(
      (word, k) => rest.includes(word) || (isNumber(own[k + 1]) && rest.includes(own[k + 1] ?? "")),
    );
    const text = (rest.length === 0 ? (names[i] ?? "") : told.join(" ")).replace(/,$/, "");
    return text.length > most ? `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(-Math.floor(most / 2))}` : text;
  });
}

const isNumber = (word: string | undefined): boolean => word !== undefined && /^[-+.\d]/.test(word);
