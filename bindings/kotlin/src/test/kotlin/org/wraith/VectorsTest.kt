package org.wraith

import com.google.gson.JsonArray
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.nio.file.Path
import java.util.HexFormat
import kotlin.io.path.readText

private val hex = HexFormat.of()

private fun cases(name: String): List<JsonObject> {
    val file = Path.of(System.getProperty("wraith.vectors"), "$name.json")
    return JsonParser.parseString(file.readText()).asJsonArray.map { it.asJsonObject }.also { assertTrue(it.isNotEmpty()) }
}

private fun JsonObject.text(name: String): String = get(name).asString

private fun JsonObject.bytes(name: String): ByteArray = hex.parseHex(text(name))

private fun JsonArray.texts(): List<String> = map { it.asString }

/** The test vectors of all languages (bindings/vectors). */
class VectorsTest {
    @Test
    fun `hashes are those of the vectors whole and in pieces`() {
        for (case in cases("hashes")) {
            val data = ByteArray(case.get("length").asInt) { (it % 251).toByte() }
            val hasher = Blake3Hasher()
            data.toList().chunked(1000).forEach { hasher.update(it.toByteArray()) }
            val expected = case.text("hash")
            assertEquals(listOf(expected, expected), listOf(hash(data), hasher.digest()).map(hex::formatHex))
        }
    }

    @Test
    fun `identities have the names and signatures of the vectors`() {
        for (case in cases("identities")) {
            val identity = Identity.fromSeed(case.bytes("seed"))
            val message = case.bytes("message")
            assertEquals(case.text("node_id"), identity.nodeId())
            assertEquals(case.text("signature"), hex.formatHex(identity.sign(message)))
            assertTrue(verify(identity.nodeId(), message, case.bytes("signature")))
            assertFalse(verify(identity.nodeId(), message + 1, case.bytes("signature")))
        }
    }

    @Test
    fun `boxes of the vectors open`() {
        for (case in cases("boxes")) {
            val text = openBox(Identity.fromSeed(case.bytes("seed")), case.bytes("context"), case.bytes("box"))
            assertEquals(case.text("text"), hex.formatHex(text))
        }
    }

    @Test
    fun `saved sessions of the vectors open their messages`() {
        for (case in cases("sessions")) {
            val session = Session.restore(case.bytes("saved"))
            val opened = case.getAsJsonArray("messages").texts().map { session.open(case.bytes("aad"), hex.parseHex(it)) }
            assertEquals(case.getAsJsonArray("texts").texts(), opened.map(hex::formatHex))
        }
    }

    @Test
    fun `saved conversations of the vectors decrypt their messages`() {
        for (case in cases("ratchets")) {
            val ratchet = Ratchet.restore(case.bytes("saved"))
            val opened = case.getAsJsonArray("messages").texts().map { ratchet.decrypt(case.bytes("aad"), hex.parseHex(it)) }
            assertEquals(case.getAsJsonArray("texts").texts(), opened.map(hex::formatHex))
        }
    }
}
