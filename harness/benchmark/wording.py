"""The words of assistant turns and the system prompt, with frozen English defaults.

Wording is looked up by milestone id, then by milestone type, in the template and
then in the manifest. A language other than English has no defaults: gold in another
language must bring its own words.
"""

from __future__ import annotations

from typing import Final

from harness.benchmark.manifest import PackManifest
from harness.benchmark.template_model import (
    PLACEHOLDER,
    SLOT_LABEL,
    Milestone,
    Template,
)
from harness.canonical import Json, canonical_json

DEFAULT_SYSTEM_PROMPT: Final = (
    "You are a helpful assistant with tools. Call a tool when the user's request "
    "needs it. If a required detail is missing, ask for it. If the tools cannot "
    "help with the request, say so."
)
DEFAULT_SYSTEM_PROMPT_ID: Final = "default-en-1"
_DEFAULTS: Final = {
    "ask_for_slot": f"Which {{{SLOT_LABEL}}} do you mean?",
    "ask_confirm": "Shall I go ahead?",
    "decline": "I am sorry, I cannot help with that.",
    "final_answer": "That is done; the details are above.",
}


def wording_of(
    manifest: PackManifest, template: Template, milestone: Milestone, language: str
) -> str:
    """Return the text of a milestone, placeholders in place; KeyError if none."""
    for wording in (template.wording, manifest.wording):
        for name in (milestone.id, milestone.type):
            text = wording.get(name or "", {}).get(language)
            if text:
                return text
    if language != "en":
        raise KeyError(language)
    return _DEFAULTS[milestone.type]


def has_wording(
    manifest: PackManifest, template: Template, milestone: Milestone, language: str
) -> bool:
    """Tell whether a milestone has words in the language."""
    try:
        wording_of(manifest, template, milestone, language)
    except KeyError:
        return False
    return True


def slot_label(template: Template, milestone: Milestone, language: str) -> str:
    """Return the label of the slot that an `ask_for_slot` asks for."""
    hidden = [slot.name for slot in template.slots.values() if not slot.visible]
    name = milestone.slot or (hidden[0] if hidden else "")
    slot = template.slots.get(name)
    if slot is None:
        return "one"
    return slot.label.get(language, name.replace("_", " "))


def as_text(value: Json) -> str:
    """Return the text that a value has inside a sentence."""
    return value if isinstance(value, str) else canonical_json(value)


def fill_text(text: str, values: dict[str, Json]) -> str:
    """Put values into the placeholders of a text, in one pass."""
    return PLACEHOLDER.sub(
        lambda match: as_text(values[match[1]]) if match[1] in values else match[0],
        text,
    )


def fill(value: Json, values: dict[str, Json]) -> Json:
    """Put values into the placeholders at any depth; a lone one keeps its type."""
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        if whole is not None and whole[1] in values:
            return values[whole[1]]
        return fill_text(value, values)
    if isinstance(value, list):
        return [fill(item, values) for item in value]
    if isinstance(value, dict):
        if "from_result" in value:
            return value
        return {key: fill(item, values) for key, item in value.items()}
    return value
