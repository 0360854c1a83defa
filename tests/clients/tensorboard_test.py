"""Reads the files for TensorBoard of a real run with the library of protocol buffers."""

import glob
import os
import struct
import subprocess
import tempfile
import unittest

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto


def messages():
    """Makes the classes of the messages in TensorFlow's event.proto and summary.proto that are used here."""
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")

    def message(name, *fields):
        added = file.message_type.add(name=name)
        for number, field, kind, other in fields:
            is_list = field.endswith("s") and other
            entry = added.field.add(name=field, number=number, type=kind,
                                    label=Field.LABEL_REPEATED if is_list else Field.LABEL_OPTIONAL)
            if other:
                entry.type_name = ".t." + other

    message("Dim", (1, "size", Field.TYPE_INT64, None))
    message("Shape", (2, "dims", Field.TYPE_MESSAGE, "Dim"))
    message("Tensor", (1, "dtype", Field.TYPE_INT32, None), (2, "shape", Field.TYPE_MESSAGE, "Shape"),
            (8, "text", Field.TYPE_BYTES, None))
    message("Plugin", (1, "name", Field.TYPE_STRING, None))
    message("Metadata", (1, "plugin", Field.TYPE_MESSAGE, "Plugin"))
    message("Value", (1, "tag", Field.TYPE_STRING, None), (2, "simple_value", Field.TYPE_FLOAT, None),
            (8, "tensor", Field.TYPE_MESSAGE, "Tensor"), (9, "metadata", Field.TYPE_MESSAGE, "Metadata"))
    message("Summary", (1, "values", Field.TYPE_MESSAGE, "Value"))
    message("SessionLog", (1, "status", Field.TYPE_INT32, None))
    message("Event", (1, "wall_time", Field.TYPE_DOUBLE, None), (2, "step", Field.TYPE_INT64, None),
            (3, "file_version", Field.TYPE_STRING, None), (5, "summary", Field.TYPE_MESSAGE, "Summary"),
            (7, "session_log", Field.TYPE_MESSAGE, "SessionLog"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("t.Event")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(pool).GetPrototype(found)


Event = messages()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read(path):
    """Returns the events of a file, whose checksums must be right and which must end with a whole record."""
    with open(path, "rb") as file:
        data = file.read()
    events = []
    while data:
        (length, check), body = struct.unpack("<QI", data[:12]), data[12:]
        assert check == masked(data[:8]), "the checksum of a length"
        assert struct.unpack("<I", body[length:length + 4])[0] == masked(body[:length]), "the checksum of a record"
        event = Event()
        event.ParseFromString(body[:length])
        events.append(event)
        data = body[length + 4:]
    return events


class TensorboardTest(unittest.TestCase):
    def train(self, *settings):
        words = [os.environ["TROUPE_PROGRAM"], "train", os.path.join(os.environ["TROUPE_CONFIG"], "quickstart.toml"),
                 "--set", "log.tensorboard=true", "--set", "name=r", "--set", "train.eval_every=4", *settings]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_a_reader_finds_each_step_and_evaluation(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.train("--set", "train.steps=10", "--set", "pipeline.stages=2")
            (path,) = glob.glob("runs/r/tensorboard/events.out.tfevents.*")
            first, start, *events = read(path)
            os.chdir("/")
        self.assertEqual(first.file_version, "brain.Event:2")
        self.assertEqual((start.session_log.status, start.step), (1, 1))
        values = {}
        for event in events:
            self.assertGreater(event.wall_time, 1.7e9)
            for value in event.summary.values:
                values.setdefault(value.tag, []).append((event.step, value.simple_value))
        for tag in ("train/loss", "train/gradient_norm", "train/learning_rate", "train/rate", "run/goodput", "run/bubble",
                    "run/memory"):
            self.assertEqual([step for step, _ in values[tag]], list(range(1, 11)), tag)
        self.assertEqual([step for step, _ in values["validation/loss"]], [4, 8, 10])
        losses = [loss for _, loss in values["train/loss"]]
        self.assertTrue(1 < losses[-1] < losses[0] < 5, losses)

    def test_a_reader_finds_samples_as_texts(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with open("book.txt", "w", encoding="utf-8") as book:
                book.write("to be or not to be " * 100)
            self.train("--set", "train.steps=4", "--set", "data.train=book.txt", "--set", "data.validate=book.txt",
                       "--set", "model.vocab=256", "--set", "sample.every=2", "--set", "sample.tokens=5",
                       "--set", "sample.prompt=to be")
            (path,) = glob.glob("runs/r/tensorboard/events.out.tfevents.*")
            events = read(path)
            os.chdir("/")
        # A sample takes back no step.
        self.assertEqual([event.step for event in events if event.session_log.status], [1])
        samples = [(event.step, value) for event in events for value in event.summary.values if value.tag == "sample"]
        self.assertEqual([step for step, _ in samples], [2, 4])
        for _, value in samples:
            self.assertEqual((value.metadata.plugin.name, value.tensor.dtype), ("text", 7))
            self.assertEqual([dim.size for dim in value.tensor.shape.dims], [1])
            self.assertTrue(value.tensor.text.startswith(b"to be"), value.tensor.text)


if __name__ == "__main__":
    unittest.main()
