"""A folder of VoicePrivacy data, assessed set by set, with the challenge's table and its emotion sets."""
